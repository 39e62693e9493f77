"""`up` and `env`: a node, and how to point clients at it."""

import logging
import os
import shlex
import sys
from pathlib import Path

from tasuki.cli import presence, screen
from tasuki.cli.complaints import Code, Complaint, start_complaint
from tasuki.cli.reach import Reach

_log = logging.getLogger("tasuki.node")
_READABLE = "a command line can be read by other users; a password belongs into TASUKI_STORE, PGPASSWORD or ~/.pgpass"


def up(
    data: Path,
    config: Path | None,
    store: str | None = None,
    *,
    host: str,
    port: int,
    dev: bool,
    clock: str = "real",
    as_json: bool,
) -> int:
    """Run a node until SIGTERM or SIGINT; answer its exit code. Prints one line when it is ready."""
    if clock not in {"real", "manual"}:
        raise Complaint(f"--clock {clock}: a clock is real, or manual (moved by tasuki clock)", Code.USAGE)
    if not 0 <= port <= 65535:
        raise Complaint(f"--port {port}: a port is a number up to 65535", Code.USAGE)
    with presence.starting(data) as sign:
        # The node's own modules take most of a second to import: the sign is up by then.
        from tasuki.runtime.node import serve
        from tasuki.runtime.opening import has_password, place_of
        from tasuki.values.config import read_config

        def ready(url: str) -> None:
            sign.take_down()
            if as_json:
                moved = {"clock": clock} if clock == "manual" else {}
                screen.show_json({"ready": True, "url": url, "data": str(data), "store": place, "dev": dev, **moved})
            else:
                shared = "" if place is None else f" and {place}"
                screen.line(f"Tasuki is ready at {url}, data in {data}{shared}. Next: eval $(tasuki env{_flag(data)})")
                if clock == "manual":
                    screen.line(f"Its clock stands still until you move it: tasuki clock advance 1h{_flag(data)}")

        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        logging.getLogger("uvicorn").setLevel(logging.WARNING)  # its start and end are ours to tell
        place = store
        try:
            if store is not None and any(store in word for word in sys.argv) and has_password(store):
                _log.warning("--store: %s", _READABLE)
            settings = read_config(
                data, config, host=host, port=port, dev=dev, clock=clock, **({"store": store} if store else {})
            )
            place = place_of(settings)
            return serve(settings, on_ready=ready)
        except Exception as error:
            complaint = start_complaint(error, host, port, str(data), shares=place is not None)
            if complaint is None:
                raise
            raise complaint from None


def _flag(data: Path) -> str:
    return "" if data == Path(".tasuki") else f" --data {shlex.quote(str(data))}"


def env(reach: Reach, *, as_json: bool) -> None:
    """Print exports for a shell, or the variables as one JSON object.

    `eval $(tasuki env)` joins the lines with spaces, so each ends in a semicolon, and what is only for reading goes to
    standard error.
    """
    variables = reach.environment
    if as_json:
        screen.show_json(variables)
        return
    screen.line(f"unset {' '.join(_in_the_way())};")
    for name, value in variables.items():
        screen.line(f"export {name}={shlex.quote(value)};")
    if sys.stderr.isatty():
        screen.line(
            f"Clients of this shell speak to {reach.url} now. AWS CLI v1 wants to be told for sqs alone: "
            'aws --endpoint-url "$AWS_ENDPOINT_URL" sqs ...',
            sys.stderr,
        )


def refuse_env() -> None:
    """Make `eval $(tasuki env)` fail as the command did: without this, the shell would see an empty line go well."""
    if not screen.interactive():
        screen.line("false;")


def _in_the_way() -> list[str]:
    """Name the variables that SDKs believe before the ones we set: a profile, a session, one service's own address."""
    own = [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL_") and name.isidentifier()]
    return ["AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", *sorted(own)]
