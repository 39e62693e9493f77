"""A cluster as whoever delivers sees it: pipes, schedules and rules run tasks in it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tasuki.language.integration_parameters import sdk_action
from tasuki.services.sdk import read_either
from tasuki.services.switchboard import NOTHING, PAYLOAD, Caller
from tasuki.services.tasks.errors import ClusterNotFoundException, InvalidParameterException
from tasuki.services.tasks.finding import find_cluster, find_definition
from tasuki.services.tasks.setting import Setting
from tasuki.services.tasks.starting import run_task, wish_of
from tasuki.store.store import Tx
from tasuki.values.arns import Arn, parse_arn
from tasuki.values.documents import loads
from tasuki.values.errors import DomainError, MalformedDocument
from tasuki.values.sdk_shapes import Misfit
from tasuki.values.service_checks import check


class NoMemory(DomainError):
    """There is not enough memory for all tasks of a RunTask: ECS's reason of the failure (ecs.md section 3)."""

    code = "RESOURCE:MEMORY"


class TooManyTasks(DomainError):
    """As many tasks run as may run at once."""

    code = "RESOURCE:CPU"


class ClusterTarget:
    """A cluster (switchboard `Target`). Parameters are RunTask's in PascalCase; the inner names of other APIs are taken, too.

    The payload is not passed to the tasks: who sends has put of it into `Overrides` what they are to know, or says that the
    payload is the overrides (`PAYLOAD`).
    """

    takes_arrays = False
    takes_text = False

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def check(self, tx: Tx, arn: str, parameters: dict[str, Any]) -> str | None:
        """Answer None if the cluster and the task definition are there and RunTask takes the parameters, else why not."""
        try:
            place = _place(arn)
            find_cluster(tx, place.account, place.region, arn)
            given = _given(_with_payload(parameters, "{}"))
            if find_definition(tx, place.account, place.region, given["taskDefinition"]) is None:
                return f"The task definition {given['taskDefinition']} does not exist."
        except ClusterNotFoundException:
            return f"The cluster {arn} does not exist."
        except DomainError as no:
            return no.message
        return None

    def waits(self, tx: Tx, arn: str) -> bool | None:  # noqa: ARG002 - as AWS: RunTask is not waited for
        """Answer that nobody waits. Whether the cluster is there, `deliver` says."""
        return False

    def deliver(
        self,
        tx: Tx,
        arn: str,
        payload: str,
        name: str | None,  # noqa: ARG002 - tasks have no names
        caller: Caller,
        *,
        parameters: Mapping[str, Any] = NOTHING,
    ) -> str:
        """Start the tasks: all of them, or none; answer the first one's ARN. Once for one `caller.idempotency`.

        An image without a mapping is a task that stops. Raises what RunTask raises, and its failures as `NoMemory` or
        `TooManyTasks`: then there may be room later.
        """
        place = _place(arn)
        given = {**_given(_with_payload(parameters, payload)), "cluster": arn}
        given.pop("clientToken", None)
        wish = replace(wish_of(given, caller), account=place.account, region=place.region)
        ran = run_task(tx, self._setting, wish)
        if ran.failures:
            why = ran.failures[0]
            raise (NoMemory if why["reason"] == NoMemory.code else TooManyTasks)(why["detail"])
        return ran.tasks[0].arn


def _with_payload(parameters: Mapping[str, Any], payload: str) -> Mapping[str, Any]:
    """Put the payload where it belongs. Raises `InvalidParameterException` for one that can't be overrides."""
    if parameters.get("Overrides") != PAYLOAD:
        return parameters
    try:
        return {**parameters, "Overrides": loads(payload)}
    except MalformedDocument as bad:
        raise InvalidParameterException(f"The overrides must be a JSON object: {bad}") from None


def _given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Answer RunTask's input. Raises `InvalidParameterException`, `Validation`."""
    action = sdk_action("ecs", "runTask")
    assert action is not None, "the model of ECS has RunTask"
    if not parameters.get("TaskDefinition"):
        raise InvalidParameterException("TaskDefinition can not be blank.")
    try:
        given = read_either(action.input, dict(parameters))
    except Misfit as wrong:
        raise InvalidParameterException(str(wrong).replace("Step Functions", "RunTask")) from None
    check(action.service, action.input, given)
    return given


def _place(arn: str) -> Arn:
    parts = parse_arn(arn)
    if parts is None or parts.service != "ecs" or not parts.resource.startswith("cluster/"):
        raise InvalidParameterException(
            f"{arn} is not the ARN of a cluster (arn:aws:ecs:REGION:ACCOUNT:cluster/NAME): tasks run in a cluster."
        )
    return parts
