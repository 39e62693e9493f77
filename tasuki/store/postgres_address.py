"""Where a PostgreSQL store is: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME`.

The schema (default `tasuki`) holds all tables of a house, so a database may have other tenants. What else stands behind the
question mark goes to the driver or to the server (`sslmode=require`). A password may also come from PGPASSWORD or ~/.pgpass.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from tasuki.values.errors import ConfigError

SCHEMES = ("postgresql", "postgres")
QUESTIONS = ("schema", "sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs")
"""What is often asked for behind the question mark, to know a slip of the pen by."""
SETTINGS = ("synchronous_commit", "lock_timeout", "idle_in_transaction_session_timeout")
"""What the URL may set in place of ours."""
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,50}")
SPELLED = "spell it postgresql://USER@HOST:PORT/DATABASE"
_ENCODED = (
    "In a password, write / as %2F, @ as %40, : as %3A, # as %23, ? as %3F and % as %25; or leave it to PGPASSWORD"
)


@dataclass(frozen=True, slots=True)
class Address:
    """A store's address, taken apart. `shown` has no password in it; `settings` are given to the server in place of ours."""

    dsn: str = field(repr=False)
    schema: str
    shown: str
    database: str
    settings: dict[str, str]
    has_password: bool = False


def read_address(url: str) -> Address:
    """Take a store's URL apart. Raises `ConfigError` that says what is wrong with it."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:  # what it says may quote the password
        raise ConfigError(f"--store: host and port can't be read; {SPELLED}. {_ENCODED}") from None
    if parts.scheme not in SCHEMES:
        raise ConfigError(f"--store {parts.scheme or 'URL'}: only PostgreSQL can be named here; {SPELLED}")
    database = parts.path.lstrip("/")
    if not database:
        raise ConfigError(f"--store: the URL names no database; {SPELLED}")
    if "/" in database or "@" in database or parts.fragment:
        raise ConfigError(f"--store: {SPELLED}. {_ENCODED}")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    schema = query.pop("schema", "tasuki")
    if _SCHEMA.fullmatch(schema) is None or schema.startswith("pg_"):
        raise ConfigError(
            f"--store: schema={schema} can't be a schema; use at most 51 small letters, digits and _, like schema=tasuki"
        )
    settings: dict[str, str] = {name: query.pop(name) for name in SETTINGS if name in query}
    at = f"{host or query.get('host', 'localhost')}{f':{port}' if port else ''}"
    shown = f"{'' if parts.username is None else parts.username + '@'}{at}/{database}"
    dsn = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(query), ""))
    return Address(
        dsn,
        schema,
        f"postgresql://{shown}" + ("" if schema == "tasuki" else f"?schema={schema}"),
        database,
        settings,
        has_password=parts.password is not None or "password" in query,
    )
