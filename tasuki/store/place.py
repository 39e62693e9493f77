"""The account and the region of a house. They are in every ARN, so a node of another region would find nothing in it.

An empty house takes those of the first node that comes; a house of an older version, those of the next.
"""

from tasuki.store.store import Tx
from tasuki.values.config import Config
from tasuki.values.errors import ConfigError

PLACE = "SELECT value FROM house WHERE name = 'place'"
KEEP_PLACE = "INSERT INTO house (name, value) VALUES ('place', ?)"


def is_known(tx: Tx, config: Config) -> bool:
    """Tell whether the house has a place (reads only). Raises `ConfigError` when it is not the one of this configuration."""
    row = tx.one(PLACE)
    if row is None:
        return False
    account, region = str(row[0]).split("/")
    ours = {"account": (config.account, account), "region": (config.region, region)}
    for key, (our, its) in ours.items():
        if our != its:
            file = (config.source or config.data / "tasuki.toml").absolute()
            raise ConfigError(
                f"This house's {key} is {its}, and this node's is {our}: through it nothing would be found. "
                f'Set {key} = "{its}" in [node] of {file}, or choose another store.'
            )
    return True


def keep(tx: Tx, config: Config) -> None:
    """Make this configuration's place the house's, if it has none. Raises `ConfigError` as above."""
    if not is_known(tx, config):
        tx.run(KEEP_PLACE, (f"{config.account}/{config.region}",))
