"""Connections: how to sign in where API destinations call. Pure, but for the rows.

==========================  ==========================================  ===========================================
AuthorizationType           AuthParameters                              every request carries
==========================  ==========================================  ===========================================
BASIC                       BasicAuthParameters                         `Authorization: Basic ...`
API_KEY                     ApiKeyAuthParameters                        the header ApiKeyName
OAUTH_CLIENT_CREDENTIALS    OAuthParameters                             `Authorization: Bearer ...`, a token that is
                                                                        fetched from the authorization endpoint
==========================  ==========================================  ===========================================

All may have InvocationHttpParameters besides: headers, query and body fields of every request. AWS keeps the secrets among them
(passwords, keys, values with IsValueSecret) in Secrets Manager; here they stay in the store, and no answer and no log has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasuki.services.buses.destinations_errors import Invalid, invalid
from tasuki.services.buses.destinations_rules import check_endpoint, check_header, refuse_breaks
from tasuki.store.store import Row
from tasuki.values.arns import build_arn
from tasuki.values.documents import loads
from tasuki.values.instant import Instant

AUTHORIZED, DEAUTHORIZED = "AUTHORIZED", "DEAUTHORIZED"
PARAMETERS_OF = {
    "BASIC": "BasicAuthParameters",
    "API_KEY": "ApiKeyAuthParameters",
    "OAUTH_CLIENT_CREDENTIALS": "OAuthParameters",
}
NEEDED = {
    "BasicAuthParameters": ("Username", "Password"),
    "ApiKeyAuthParameters": ("ApiKeyName", "ApiKeyValue"),
    "OAuthParameters": ("ClientParameters", "AuthorizationEndpoint", "HttpMethod"),
}
_SECRETS = frozenset({"Password", "ApiKeyValue", "ClientSecret"})
_LISTS = ("HeaderParameters", "QueryStringParameters", "BodyParameters")


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection. `parameters` is AuthParameters as it was given."""

    id: int
    account: str
    region: str
    name: str
    suffix: str
    revision: str
    description: str | None
    kind: str
    state: str
    parameters: Mapping[str, Any] = field(repr=False)
    secret: str
    kms_key: str | None
    created: Instant
    modified: Instant
    authorized: Instant | None

    @classmethod
    def of_row(cls, row: Row) -> "Connection":
        """Read a row of `connections`."""
        return cls(*[*row[:9], loads(row[9]), *row[10:15]])

    @property
    def arn(self) -> str:
        """The ARN, which another connection of the same name does not have."""
        return build_arn("events", self.region, self.account, f"connection/{self.name}/{self.suffix}")

    def summary(self, state: str | None = None) -> dict[str, Any]:
        """What every change answers."""
        shown: dict[str, Any] = {
            "ConnectionArn": self.arn,
            "ConnectionState": state or self.state,
            "CreationTime": self.created,
            "LastModifiedTime": self.modified,
        }
        if self.authorized is not None:
            shown["LastAuthorizedTime"] = self.authorized
        return shown

    def listed(self) -> dict[str, Any]:
        """As ListConnections shows it."""
        return {**self.summary(), "Name": self.name, "AuthorizationType": self.kind}

    def described(self) -> dict[str, Any]:
        """As DescribeConnection shows it: without secrets."""
        secret = f"secret:events!connection/{self.name}/{self.secret}"
        shown = {
            **self.listed(),
            "SecretArn": build_arn("secretsmanager", self.region, self.account, secret),
            "AuthParameters": without_secrets(self.parameters),
        }
        if self.description is not None:
            shown["Description"] = self.description
        if self.kms_key is not None:
            shown["KmsKeyIdentifier"] = self.kms_key
        return shown

    @property
    def extras(self) -> Mapping[str, Any]:
        """InvocationHttpParameters."""
        extras: Mapping[str, Any] = self.parameters.get("InvocationHttpParameters") or {}
        return extras


def pairs(parameters: Mapping[str, Any], name: str) -> dict[str, str]:
    """Answer one of the lists of ConnectionHttpParameters as a table."""
    return {one.get("Key", ""): one.get("Value", "") for one in parameters.get(name) or ()}


def without_secrets(value: Any) -> Any:
    """Leave out passwords, keys, and the values of pairs that are marked secret."""
    if isinstance(value, dict):
        secret = value.get("IsValueSecret") is True
        return {
            key: without_secrets(inner)
            for key, inner in value.items()
            if key not in _SECRETS and not (secret and key == "Value")
        }
    if isinstance(value, list):
        return [without_secrets(one) for one in value]
    return value


def secrets_of(value: Any) -> list[str]:
    """Answer the texts that `without_secrets` leaves out."""
    if isinstance(value, dict):
        secret = value.get("IsValueSecret") is True
        found: list[str] = []
        for key, inner in value.items():
            if key in _SECRETS or (secret and key == "Value"):
                found.append(str(inner))
            else:
                found += secrets_of(inner)
        return found
    if isinstance(value, list):
        return [text for one in value for text in secrets_of(one)]
    return []


def merged(old: Mapping[str, Any], given: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Lay the parameters of an update over the old ones: what is not given stays, a list that is given is the new list.

    Parameters of another authorization type than the connection now has are dropped.
    """
    kept = {name: value for name, value in old.items() if name not in NEEDED or name == PARAMETERS_OF[kind]}
    return _over(kept, given)


def _over(old: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    laid = dict(old)
    for name, value in given.items():
        before = laid.get(name)
        laid[name] = _over(before, value) if isinstance(value, dict) and isinstance(before, dict) else value
    return laid


def check_parameters(kind: str, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters with which no request could be signed, or that reach for what is not theirs. Raises `Invalid`."""
    own = PARAMETERS_OF[kind]
    if own not in parameters:
        raise invalid(f"AuthParameters.{own}", f"AuthorizationType {kind} needs it.")
    for other in NEEDED:
        if other != own and other in parameters:
            raise invalid(f"AuthParameters.{other}", f"AuthorizationType {kind} takes {own} only.")
    if "ConnectivityParameters" in parameters:
        raise no_private_way("AuthParameters.ConnectivityParameters")
    for name in NEEDED[own]:
        if name not in parameters[own]:
            raise invalid(f"AuthParameters.{own}.{name}", "It is needed.")
    refuse_breaks(f"AuthParameters.{own}", parameters[own])
    if own == "ApiKeyAuthParameters":
        check_header("AuthParameters.ApiKeyAuthParameters.ApiKeyName", parameters[own]["ApiKeyName"])
    elif own == "OAuthParameters":
        for name in ("ClientID", "ClientSecret"):
            if name not in parameters[own]["ClientParameters"]:
                raise invalid(f"AuthParameters.OAuthParameters.ClientParameters.{name}", "It is needed.")
        check_endpoint("AuthParameters.OAuthParameters.AuthorizationEndpoint", parameters[own]["AuthorizationEndpoint"])
        _check_pairs(
            "AuthParameters.OAuthParameters.OAuthHttpParameters", parameters[own].get("OAuthHttpParameters") or {}
        )
    _check_pairs("AuthParameters.InvocationHttpParameters", parameters.get("InvocationHttpParameters") or {})


def _check_pairs(where: str, parameters: Mapping[str, Any]) -> None:
    for name in _LISTS:
        for number, one in enumerate(parameters.get(name) or (), 1):
            at = f"{where}.{name}.{number}"
            if not one.get("Key"):
                raise invalid(f"{at}.Key", "It is needed.")
            if name == "HeaderParameters":
                check_header(f"{at}.Key", one["Key"])
            if name != "BodyParameters":
                refuse_breaks(f"{at}.Value", one.get("Value", ""))


def no_private_way(field_name: str) -> Invalid:
    """Answer the error for connectivity that only AWS has."""
    return invalid(
        field_name,
        "Private connectivity through VPC Lattice is not offered; leave it out and name the network under [outbound] allow in tasuki.toml.",
    )
