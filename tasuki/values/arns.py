"""Amazon Resource Names: `arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE` (AWS General Reference, "ARNs")."""

from typing import NamedTuple


class Arn(NamedTuple):
    """The six parts. `resource` is everything after the account, colons and slashes included."""

    partition: str
    service: str
    region: str
    account: str
    resource: str

    def __str__(self) -> str:
        return f"arn:{self.partition}:{self.service}:{self.region}:{self.account}:{self.resource}"


def parse_arn(text: str) -> Arn | None:
    """Take an ARN apart; `None` when it is not one."""
    parts = text.split(":", 5)
    if len(parts) != 6 or parts[0] != "arn" or not parts[1] or not parts[2] or not parts[5]:
        return None
    return Arn(*parts[1:])


def build_arn(service: str, region: str, account: str, resource: str) -> str:
    """Put an ARN together in the `aws` partition."""
    return f"arn:aws:{service}:{region}:{account}:{resource}"
