"""The operations of the room (botocore `events`, 2015-10-07).

Buses, permissions: `buses_api`. Rules, targets: `rules_api`. Tags: `tagging`. Events: `putting`. Connections and API destinations:
`destinations_api`. Archives, replays, partner event sources and global endpoints are not offered, and the door says so.
"""

from tasuki.services.buses import buses_api, destinations_api, putting, rules_api, tagging
from tasuki.services.switchboard import Switchboard
from tasuki.values.config import Config
from tasuki.values.operations import Operation, Operations


def operations(config: Config, switchboard: Switchboard) -> Operations:
    """Answer the table of operations."""
    quotas = config.quotas
    rules = rules_api.RulesApi(quotas.get("event_rules", rules_api.DEFAULT_QUOTA), switchboard)
    return {
        **buses_api.operations(quotas.get("event_buses", buses_api.DEFAULT_QUOTA)),
        **rules.operations(),
        **tagging.operations(),
        "PutEvents": Operation("write", putting.put_events),
        "TestEventPattern": Operation("read", putting.try_pattern),
        **destinations_api.operations(),
    }
