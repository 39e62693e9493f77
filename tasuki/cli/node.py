"""`up` and `env`: a node, and how to point clients at it."""

import logging
import shlex
from pathlib import Path
from typing import Literal, TypeAlias

from tasuki.cli import screen
from tasuki.cli.complaints import Code, Complaint, start_complaint
from tasuki.cli.reach import Reach

ClockName: TypeAlias = Literal["real", "manual"]


def up(data: Path, config: Path | None, *, host: str, port: int, dev: bool, clock: ClockName, as_json: bool) -> int:
    """Run a node until SIGTERM or SIGINT; answer its exit code. Prints one line when it is ready."""
    from tasuki.runtime.node import serve
    from tasuki.values.config import read_config

    if not 0 <= port <= 65535:
        raise Complaint(f"--port {port}: a port is a number up to 65535", Code.USAGE)

    def ready(url: str) -> None:
        if as_json:
            screen.show_json({"ready": True, "url": url, "data": str(data), "dev": dev})
        else:
            screen.line(f"Tasuki is ready at {url}, data in {data}. Next: eval $(tasuki env{_flag(data)})")

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # its start and end are ours to tell
    try:
        settings = read_config(data, config, host=host, port=port, dev=dev, clock=clock)
        return serve(settings, on_ready=ready)
    except Exception as error:
        complaint = start_complaint(error, host, port, str(data))
        if complaint is None:
            raise
        raise complaint from None


def _flag(data: Path) -> str:
    return "" if data == Path(".tasuki") else f" --data {shlex.quote(str(data))}"


def env(reach: Reach, *, as_json: bool) -> None:
    """Print exports for a shell, or the variables as one JSON object.

    `eval $(tasuki env)` joins the lines with spaces, so each ends in a semicolon and what is only for reading comes last.
    """
    variables = reach.environment
    if as_json:
        screen.show_json(variables)
        return
    for name, value in variables.items():
        screen.line(f"export {name}={shlex.quote(value)};")
    screen.line(
        "# boto3, AWS CLI v2, SAM, CDK and Terraform read these. AWS CLI v1 ignores the address for sqs alone:\n"
        '# aws --endpoint-url "$AWS_ENDPOINT_URL" sqs list-queues\n'
        "# StartSyncExecution and TestState put sync- before the host name. The last variable turns that off where SDKs know it;\n"
        "# the node also answers to sync-localhost and the like, where your system resolves them."
    )
