"""boto3 clients of a house, and the environment that leads any boto3 there."""

import os
from typing import Any

OTHERS = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_CA_BUNDLE",
)
"""What would lead a client elsewhere, to the account of whoever runs the tests."""
PER_SERVICE = "AWS_ENDPOINT_URL_"

_loader: Any = None


class NoBoto3(ImportError):
    """boto3 is not installed."""

    def __init__(self) -> None:
        super().__init__("the house's clients are boto3's, which is not installed: pip install boto3")


def environment_of(url: str, key: str, secret: str, region: str) -> dict[str, str]:
    """Answer the variables that lead an SDK or the AWS CLI to a house, and to nothing else."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_DISABLE_HOST_PREFIX_INJECTION": "true",  # StartSyncExecution would go to sync-127.0.0.1
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


def unwanted(environment: dict[str, str]) -> list[str]:
    """Answer the variables of `environment` that must go meanwhile."""
    return [name for name in environment if name in OTHERS or name.startswith(PER_SERVICE)]


def fresh_session(*, profiles: bool = True) -> Any:
    """Answer a boto3 session that has read nothing yet, but shares the models that other sessions have loaded.

    Without `profiles` it heeds no `AWS_PROFILE`. Raises `NoBoto3`.
    """
    global _loader  # noqa: PLW0603 - models are the same for all, and take long to read
    try:
        import boto3
        import botocore.loaders
        import botocore.session
    except ImportError:
        raise NoBoto3 from None
    if _loader is None:
        _loader = botocore.loaders.Loader()
    inner = botocore.session.Session(session_vars=None if profiles else {"profile": (None, None, None, None)})
    inner.register_component("data_loader", _loader)
    return boto3.Session(botocore_session=inner)


class Clients:
    """Clients of one house, made when they are first asked for."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._session: Any = None
        self._made: dict[str, Any] = {}

    def get(self, service: str) -> Any:
        """Answer the client of a service. Raises `NoBoto3`."""
        if service not in self._made:
            if self._session is None:
                self._session = fresh_session(profiles=False)
            from botocore.config import Config

            given = self._environment
            self._made[service] = self._session.client(
                service,
                region_name=given["AWS_REGION"],
                endpoint_url=given["AWS_ENDPOINT_URL"],
                aws_access_key_id=given["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=given["AWS_SECRET_ACCESS_KEY"],
                config=Config(proxies={}, inject_host_prefix=False),
            )
        return self._made[service]

    def close(self) -> None:
        """Close their connections."""
        for client in self._made.values():
            client.close()
        self._made.clear()
