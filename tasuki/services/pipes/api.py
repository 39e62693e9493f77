"""The operations of Pipes (botocore `pipes`, 2015-10-07; shapes in PascalCase, tags of the tag operations lower-case).

What changes a pipe says `tx.alone()` before it writes: no round of it is under way meanwhile, on any node.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from tasuki.rules.escapes import escaped_attributes
from tasuki.services.pipes import queries
from tasuki.services.pipes.errors import (
    ConflictException,
    NotFoundException,
    ServiceQuotaExceededException,
    invalid_field,
    no_such_pipe,
)
from tasuki.services.pipes.flows import BATCH_SIZE, Flow, compile_flow
from tasuki.services.pipes.model import (
    MAX_TAGS,
    Pipe,
    as_reason,
)
from tasuki.services.pipes.naming import TAG
from tasuki.services.pipes.surroundings import check_surroundings, missing
from tasuki.services.pipes.target_parameters import Kind, kind_of
from tasuki.services.switchboard import Switchboard
from tasuki.store.pages import page_tokens
from tasuki.store.store import Tx
from tasuki.values import documents
from tasuki.values.arns import parse_arn
from tasuki.values.config import Config
from tasuki.values.operations import Operation, Operations, Request
from tasuki.values.pages import BadPageToken

log = logging.getLogger("tasuki.pipes")

DEFAULT_QUOTA = 1_000
"""Pipes per account (quota "Number of pipes per account"); `[quotas] pipes` in the configuration."""
PAGE_SIZE = 100
_Run: TypeAlias = Callable[[Tx, Request], dict[str, Any]]


class Api:
    """The operations, with what they need of the house."""

    def __init__(self, config: Config, switchboard: Switchboard) -> None:
        self._switchboard = switchboard
        self._quota = config.quotas.get("pipes", DEFAULT_QUOTA)

    def operations(self) -> Operations:
        """Answer the table for the door."""
        writes: dict[str, _Run] = {
            "CreatePipe": self.create_pipe,
            "UpdatePipe": self.update_pipe,
            "DeletePipe": self.delete_pipe,
            "StartPipe": self.start_pipe,
            "StopPipe": self.stop_pipe,
            "TagResource": self.tag_resource,
            "UntagResource": self.untag_resource,
        }
        reads: dict[str, _Run] = {
            "DescribePipe": describe_pipe,
            "ListPipes": list_pipes,
            "ListTagsForResource": list_tags_for_resource,
        }
        return {
            **{name: Operation("write", run) for name, run in writes.items()},
            **{name: Operation("read", run) for name, run in reads.items()},
        }

    def create_pipe(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Create a pipe, running unless DesiredState is STOPPED.

        RoleArn, LogConfiguration and KmsKeyIdentifier are kept and described, and change nothing: what a pipe did is in
        the handovers (`ListHandovers`).
        """
        given = request.input
        name = given["Name"]
        if tx.one(queries.BY_NAME, (request.account, request.region, name)) is not None:
            raise ConflictException(f"Pipe {name} already exists.", resourceId=name, resourceType="AWS::Pipes::Pipe")
        count = tx.one(queries.COUNT, (request.account, request.region))
        if count is not None and count[0] >= self._quota:
            raise ServiceQuotaExceededException(
                f"The account has {count[0]} pipes, which is its limit; raise [quotas] pipes in tasuki.toml.",
                resourceId=name,
                resourceType="AWS::Pipes::Pipe",
                serviceCode="pipes",
                quotaCode="L-86A9B6DE",
            )
        tags = dict(given.get("Tags") or {})
        _check_tags(tags, "Tags")
        desired = given.get("DesiredState", "RUNNING")
        pipe = Pipe(
            id=0,
            account=request.account,
            region=request.region,
            name=name,
            description=given.get("Description"),
            desired=desired,
            current=desired,
            reason="",
            source=given["Source"],
            source_parameters=dict(given.get("SourceParameters") or {}),
            enrichment=_enrichment(given),
            enrichment_parameters=_without_empty_template(given.get("EnrichmentParameters") or {}),
            target=given["Target"],
            target_parameters=_without_empty_template(given.get("TargetParameters") or {}),
            role=given["RoleArn"],
            log_configuration=given.get("LogConfiguration"),
            kms_key=given.get("KmsKeyIdentifier"),
            tags=tags,
            created=tx.now,
            modified=tx.now,
        )
        flow = compile_flow(pipe)
        check_surroundings(tx, self._switchboard, pipe, flow)
        _warn_of_escapes(pipe)
        tx.alone()
        _insert(tx, pipe, flow)
        return pipe.summary("CREATING")

    def update_pipe(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Give a pipe a new definition, effective from its next round.

        What is not given stays, but each object inside SourceParameters, EnrichmentParameters and TargetParameters that is
        given replaces the old one whole: members it omits are back at their defaults. An empty InputTemplate removes the
        template, an empty Enrichment the enrichment with its parameters. A target of another kind takes none of the old
        one's parameters, but for the template.
        """
        given = request.input
        old = _find(tx, request, given["Name"])
        desired = given.get("DesiredState", old.desired)
        pipe = replace(
            old,
            description=given.get("Description", old.description),
            desired=desired,
            current=desired,
            reason="",
            source_parameters=_replaced(old.source_parameters, given.get("SourceParameters")),
            enrichment=_enrichment(given) if "Enrichment" in given else old.enrichment,
            enrichment_parameters=_replaced(old.enrichment_parameters, given.get("EnrichmentParameters")),
            target=given.get("Target", old.target),
            target_parameters=_replaced(old.target_parameters, given.get("TargetParameters")),
            role=given["RoleArn"],
            log_configuration=given.get("LogConfiguration", old.log_configuration),
            kms_key=given.get("KmsKeyIdentifier", old.kms_key),
            modified=tx.now,
        )
        pipe = _without_what_no_longer_fits(old, pipe, given)
        flow = compile_flow(pipe, BATCH_SIZE)
        check_surroundings(tx, self._switchboard, pipe, flow)
        _warn_of_escapes(pipe)
        tx.alone()
        _update(tx, pipe, flow)
        return pipe.summary("UPDATING")

    def delete_pipe(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Delete a pipe. Batches that are on their way end as they began."""
        pipe = _find(tx, request, request.input["Name"])
        tx.alone()
        tx.run(queries.DELETE, (pipe.id,))
        tx.run(queries.DELETE_FLOW, (pipe.id,))
        tx.run(queries.ORPHAN_CALLS, (pipe.id,))
        return pipe.summary("DELETING") | {"DesiredState": "DELETED"}

    def start_pipe(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Start a pipe; it is START_FAILED with a reason when its source or target is gone. A running one goes on."""
        pipe = _find(tx, request, request.input["Name"])
        if pipe.current == "RUNNING":
            return pipe.summary()
        problem = missing(tx, self._switchboard, compile_flow(pipe))
        reason = "" if problem is None else as_reason(f"{problem[0]}: {problem[1]}")
        _set_state(tx, pipe, "RUNNING", "RUNNING" if problem is None else "START_FAILED", reason)
        return replace(pipe, desired="RUNNING", modified=tx.now).summary("STARTING")

    def stop_pipe(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Stop a pipe: it takes nothing more, and batches that are on their way end as they began. A stopped one stays stopped."""
        pipe = _find(tx, request, request.input["Name"])
        if pipe.current in {"STOPPED", "STOPPING"} and pipe.desired == "STOPPED":
            return pipe.summary()
        _set_state(tx, pipe, "STOPPED", "STOPPED", "")
        return replace(pipe, desired="STOPPED", modified=tx.now).summary("STOPPING")

    def tag_resource(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Add tags, or give them new values."""
        pipe = _find_by_arn(tx, request)
        tags = {**pipe.tags, **request.input["tags"]}
        _check_tags(tags, "tags")
        _set_tags(tx, pipe, tags)
        return {}

    def untag_resource(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Remove tags; keys that aren't there are no error."""
        pipe = _find_by_arn(tx, request)
        gone = set(request.input["tagKeys"])
        _set_tags(tx, pipe, {key: value for key, value in pipe.tags.items() if key not in gone})
        return {}


def describe_pipe(tx: Tx, request: Request) -> dict[str, Any]:
    """Describe a pipe. StateReason tells why it stopped, or of its last failure while it keeps trying."""
    return _find(tx, request, request.input["Name"]).described()


def list_pipes(tx: Tx, request: Request) -> dict[str, Any]:
    """List pipes by name, a page at a time."""
    given = request.input
    names = ("DesiredState", "CurrentState", "NamePrefix", "SourcePrefix", "TargetPrefix")
    desired, current, name_prefix, source_prefix, target_prefix = (given.get(name, "") for name in names)
    query = "ListPipes:" + documents.dumps([request.account, request.region, *(given.get(name, "") for name in names)])
    tokens = page_tokens(tx)
    after: str | int = ""
    if token := given.get("NextToken"):
        try:
            after = tokens.open(query, token)
        except BadPageToken:
            raise invalid_field("NextToken", "NextToken is not one that this listing answered.") from None
    limit = given.get("Limit", PAGE_SIZE)
    states = (desired, desired, current, current)
    prefixes = (name_prefix, name_prefix, source_prefix, source_prefix, target_prefix, target_prefix)
    rows = tx.all(queries.PAGE, (request.account, request.region, after, *states, *prefixes, limit + 1))
    pipes = [Pipe.of_row(row) for row in rows[:limit]]
    answer: dict[str, Any] = {"Pipes": [pipe.listed() for pipe in pipes]}
    if len(rows) > limit:
        answer["NextToken"] = tokens.seal(query, pipes[-1].name)
    return answer


def list_tags_for_resource(tx: Tx, request: Request) -> dict[str, Any]:
    """Answer a pipe's tags."""
    return {"tags": _find_by_arn(tx, request).tags}


# -- rows ---------------------------------------------------------------------------------------------------


def _find(tx: Tx, request: Request, name: str) -> Pipe:
    row = tx.one(queries.BY_NAME, (request.account, request.region, name)) if "\0" not in name else None
    if row is None:
        raise no_such_pipe(name)
    return Pipe.of_row(row)


def _find_by_arn(tx: Tx, request: Request) -> Pipe:
    text = request.input["resourceArn"]
    arn = parse_arn(text)
    if arn is None or "\0" in text or arn.service != "pipes" or not arn.resource.startswith("pipe/"):
        raise NotFoundException(f"{text} is not the ARN of a pipe.")
    row = tx.one(queries.BY_NAME, (arn.account, arn.region, arn.resource.removeprefix("pipe/")))
    if row is None:
        raise no_such_pipe(text)
    return Pipe.of_row(row)


def _insert(tx: Tx, pipe: Pipe, flow: Flow) -> None:
    row = tx.one(
        queries.INSERT,
        (
            pipe.account,
            pipe.region,
            pipe.name,
            pipe.description,
            pipe.desired,
            pipe.current,
            pipe.source,
            documents.dumps(pipe.source_parameters),
            pipe.enrichment,
            documents.dumps(pipe.enrichment_parameters),
            pipe.target,
            documents.dumps(pipe.target_parameters),
            pipe.role,
            _text(pipe.log_configuration),
            pipe.kms_key,
            documents.dumps(pipe.tags),
            pipe.created,
            pipe.modified,
        ),
    )
    assert row is not None, "INSERT answers the id"
    running = int(pipe.current == "RUNNING")
    tx.run(queries.INSERT_FLOW, (row[0], tx.chance.hex(16), running, pipe.source, flow.batch_size, flow.window_ms))
    tx.ring("pipes")


def _update(tx: Tx, pipe: Pipe, flow: Flow) -> None:
    tx.run(
        queries.UPDATE,
        (
            pipe.description,
            pipe.desired,
            pipe.current,
            documents.dumps(pipe.source_parameters),
            pipe.enrichment,
            documents.dumps(pipe.enrichment_parameters),
            pipe.target,
            documents.dumps(pipe.target_parameters),
            pipe.role,
            _text(pipe.log_configuration),
            pipe.kms_key,
            pipe.modified,
            pipe.id,
        ),
    )
    running = int(pipe.current == "RUNNING")
    tx.run(queries.UPDATE_FLOW, (tx.chance.hex(16), running, flow.batch_size, flow.window_ms, pipe.reason, pipe.id))
    tx.ring("pipes")


def _set_state(tx: Tx, pipe: Pipe, desired: str, current: str, reason: str) -> None:
    tx.alone()
    tx.run(queries.SET_STATE, (desired, current, tx.now, pipe.id))
    tx.run(queries.RUN_FLOW, (int(current == "RUNNING"), reason, pipe.id))
    tx.ring("pipes")


def _set_tags(tx: Tx, pipe: Pipe, tags: dict[str, str]) -> None:
    tx.alone()
    if tags.get(TAG) != pipe.tags.get(TAG):
        compile_flow(replace(pipe, tags=tags), "tags")
        tx.run(queries.SET_REVISION, (tx.chance.hex(16), pipe.id))
    tx.run(queries.SET_TAGS, (documents.dumps(tags), pipe.id))


def _text(value: dict[str, Any] | None) -> str | None:
    return None if value is None else documents.dumps(value)


# -- input --------------------------------------------------------------------------------------------------


def _enrichment(given: Any) -> str:
    enrichment: str = given.get("Enrichment") or ""
    return enrichment


def _replaced(old: dict[str, Any], given: dict[str, Any] | None) -> dict[str, Any]:
    return _without_empty_template({**old, **(given or {})})


def _without_what_no_longer_fits(old: Pipe, pipe: Pipe, given: Any) -> Pipe:
    """Drop the parameters that only the old enrichment or target took, unless they are given again."""
    enrichment, target = pipe.enrichment_parameters, pipe.target_parameters
    if not pipe.enrichment:
        enrichment = {}
    elif _kind(pipe.enrichment) != _kind(old.enrichment):
        enrichment = _kept(enrichment, given.get("EnrichmentParameters"))
    if _kind(pipe.target) != _kind(old.target):
        target = _kept(target, given.get("TargetParameters"))
    return replace(pipe, enrichment_parameters=enrichment, target_parameters=target)


def _kept(parameters: dict[str, Any], given: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name == "InputTemplate" or name in (given or {})}


def _kind(text: str) -> Kind | None:
    arn = parse_arn(text)
    return kind_of(arn.service, arn.resource) if arn is not None else None


def _warn_of_escapes(pipe: Pipe) -> None:
    for field, parameters in (
        ("EnrichmentParameters", pipe.enrichment_parameters),
        ("TargetParameters", pipe.target_parameters),
    ):
        for variable in escaped_attributes(parameters.get("InputTemplate") or ""):
            log.warning(
                "pipe %s: %s.InputTemplate holds %s with its brackets escaped (\\u003c), which stays as it is; write it unescaped",
                pipe.name,
                field,
                variable,
            )


def _without_empty_template(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name != "InputTemplate" or value}


def _check_tags(tags: dict[str, str], field: str) -> None:
    if len(tags) > MAX_TAGS:
        raise invalid_field(field, f"A pipe has at most {MAX_TAGS} tags.")
    reserved = next((key for key in tags if key.lower().startswith("aws:")), None)
    if reserved is not None:
        raise invalid_field(field, f"Tag keys that start with aws: are reserved; {reserved} is not allowed.")
