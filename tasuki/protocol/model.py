"""Which service is meant: by botocore's name, by a signature's scope, by a target's prefix.

Beside AWS's models there is the house's own, and the older query form of a service that has moved on to JSON.
"""

from collections.abc import Mapping

from tasuki.protocol.house_model import HOUSE, house_model
from tasuki.protocol.legacy import lay_over
from tasuki.values.service_models import Service, build_service, read_model, service_model

_SIGNED_AS = {
    "states": "stepfunctions",
    "monitoring": "cloudwatch",
    "email": "ses",
    "elasticmapreduce": "emr",
    "elasticloadbalancing": "elbv2",
    "execute-api": "apigatewaymanagementapi",
    "tagging": "resourcegroupstaggingapi",
    "servicecatalog": "servicecatalog",
    "aws-marketplace": "marketplace-catalog",
}
"""Where the name in a signature's scope is not botocore's name of the service."""


class Models:
    """All services known to botocore, read when they are asked for."""

    def __init__(self, offered: Mapping[str, object]) -> None:
        self._offered = frozenset(offered)
        self._kept: dict[str, Service] = {}

    def service(self, name: str, protocol: str | None = None) -> Service | None:
        """A service by botocore's name; with `protocol` `query`, the older form of a service that has one."""
        key = f"{name} {protocol}" if protocol else name
        found = self._kept.get(key) or _read(name, protocol)
        if found is not None and name in self._offered:
            self._kept[key] = found
        return found

    def signed_as(self, signing_name: str) -> Service | None:
        """The service that a signature's scope names, or None when there is none of that name."""
        for name in (_SIGNED_AS.get(signing_name, signing_name), signing_name):
            service = self.service(name)
            if service is not None and service.signing_name == signing_name:
                return service
        for name in self._offered:
            service = self.service(name)
            if service is not None and service.signing_name == signing_name:
                return service
        return None

    def targeted(self, prefix: str) -> Service | None:
        """The offered service whose `X-Amz-Target` begins with `prefix`."""
        for name in self._offered:
            service = self.service(name)
            if service is not None and service.protocol == "json" and service.target_prefix == prefix:
                return service
        return None


def _read(name: str, protocol: str | None) -> Service | None:
    service = build_service(HOUSE, house_model()) if name == HOUSE else service_model(name)
    if service is None or protocol is None or service.protocol == protocol:
        return service
    spec = read_model(name)
    if spec is None or not lay_over(name, spec):
        return None
    return build_service(name, spec)
