"""`tasuki lint`: what AWS would say of a definition, and what it would not, though it will fail one night.

AWS's errors come from `parse`, its warnings from `cautions`. Ours are judged on a definition that AWS accepts: paths that
find nothing (`flow_lint`), and what stands below. Each says why it matters and what to do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tasuki.language.cautions import cautions
from tasuki.language.check import blocks_of
from tasuki.language.definition import Machine
from tasuki.language.errors import Diagnosis, InvalidDefinition
from tasuki.language.flow_lint import check_paths
from tasuki.language.integration_lint import integrations, states_in
from tasuki.language.jsonata_lint import calls, nearest_function, slips
from tasuki.language.parse import parse, read_object
from tasuki.language.payload import escape
from tasuki.language.refusal_lint import explained
from tasuki.language.resources import parse_resource
from tasuki.language.retry import HEARTBEAT_TIMEOUT, matches
from tasuki.language.shapes import Presence
from tasuki.language.variables import names_in_reach

_NOTICES = frozenset({"sqs:sendMessage", "sns:publish", "events:putEvents"})
"""Integrations that tell somebody: they are what a failure notice is made of, and need none themselves."""
_FIXES = {
    "MISSING_TRANSITION_TARGET": "Name a state of the same States object, or remove the state that nothing leads to.",
    "NO_DOLLAR": "Add '.$' to the field's name, or leave it if the text is meant as it stands.",
    "NO_PATH": "Use the operator that ends in Path, or leave it if the text is meant as it stands.",
    "PASS_RESULT_IS_STATIC": "Use Parameters, where '.$' fields hold paths.",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or will be. `severity` is ERROR when AWS refuses the definition for it, or the state cannot do its work."""

    code: str
    severity: str
    location: str
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found, and whether all checks ran: what is refused is not looked at any further."""

    findings: list[Finding]
    whole: bool


def lint(text: str, *, pipe_target: bool = False) -> list[Finding]:
    """Answer everything there is to say about a definition's text, errors first, each once."""
    return survey(text, pipe_target=pipe_target).findings


def survey(text: str, *, pipe_target: bool = False) -> Survey:
    """Answer what there is to say, errors first, each once, and whether there may be more behind it.

    `pipe_target`: a pipe starts the machine and does not wait for it, so nobody sees an execution fail.
    """
    try:
        machine = parse(text)
    except InvalidDefinition as bad:
        return Survey([_refused(text, one) for one in bad.diagnoses], whole=False)
    value = read_object(text)
    found = [_of_aws(one) for one in cautions(value)]

    def tell(at: str, path: str, presence: Presence) -> None:
        found.append(_never_filled(at, path) if presence == "never" else _may_be_absent(at, path))

    check_paths(value, tell)
    found.extend(_variables(machine, value))
    found.extend(Finding(*slip) for slip in (*integrations(value), *slips(value)))
    for pointer, block in blocks_of(value):
        for name, state in block["States"].items():
            found.extend(_of_state(state, f"{pointer}/States/{escape(name)}"))
    if pipe_target:
        found.extend(_unseen(value))
    return Survey(sorted(dict.fromkeys(found), key=lambda one: one.severity != "ERROR"), whole=True)


def _refused(text: str, one: Diagnosis) -> Finding:
    message, fix = explained(text, one)
    # The parser's long words quote the text, as AWS's location does: for people the root is enough.
    location = "/" if one.code == "INVALID_JSON_DESCRIPTION" else one.location
    return Finding(one.code, one.severity, location, message, _FIXES.get(one.code, fix))


def _of_aws(one: Diagnosis) -> Finding:
    return Finding(one.code, one.severity, one.location, one.message, _FIXES.get(one.code, ""))


def _never_filled(at: str, path: str) -> Finding:
    return Finding(
        "PATH_NEVER_FILLED",
        "WARNING",
        at,
        f"No state before this one puts anything at {path}: the execution fails here with States.Runtime, which no Catch takes.",
        "Correct the path, or have an earlier state write it (ResultPath, ResultSelector, Parameters).",
    )


def _may_be_absent(at: str, path: str) -> Finding:
    return Finding(
        "VALUE_MAY_BE_ABSENT",
        "WARNING",
        at,
        f"{path} is there on some ways to this state and not on others: without it the execution fails with States.Runtime, "
        "which no Catch takes.",
        f"Ask first (Choice, IsPresent on {path}), or give it a value on every way.",
    )


def _variables(machine: Machine, value: dict[str, Any]) -> Iterator[Finding]:
    """Complain about variables that no state assigns, in its own scope or in one around it."""
    reach = names_in_reach(value)
    anywhere = frozenset[str]().union(*reach.values())
    called = {at: calls(state) for at, state, language in states_in(value) if language == "JSONata"}
    for pointer, block in blocks_of(value):
        for name in block["States"]:
            at = f"{pointer}/States/{escape(name)}"
            for variable in machine.references.get(name, ()):
                if variable in reach[pointer]:
                    continue
                if variable not in anywhere and variable in called.get(at, ()):
                    yield _no_function(at, variable)
                    continue
                what = f"No state assigns the variable ${variable}"
                if variable in anywhere:
                    what = f"The variable ${variable} belongs to another scope and cannot be seen here"
                yield Finding(
                    "VARIABLE_NEVER_ASSIGNED",
                    "WARNING",
                    at,
                    f"{what}: the state fails whenever it is read.",
                    "Add it to the Assign of an earlier state, or correct its name. "
                    f"Those that can be seen here: {_listed(reach[pointer])}.",
                )


def _no_function(at: str, name: str) -> Finding:
    near = nearest_function(name)
    return Finding(
        "NO_SUCH_FUNCTION",
        "WARNING",
        at,
        f"There is no such function: ${name}. The state fails with States.QueryEvaluationError when it is called.",
        f"Did you mean ${near}?"
        if near
        else "Use one of JSONata's functions, or bind it: ($f := function($x) { ... }; ...).",
    )


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f"${name}" for name in sorted(names)) or "none"


def _of_state(state: dict[str, Any], at: str) -> Iterator[Finding]:
    yield from _shadowed(state.get("Retry", ()), f"{at}/Retry", "RETRIER_NEVER_MATCHES", "retrier")
    yield from _shadowed(state.get("Catch", ()), f"{at}/Catch", "CATCHER_NEVER_MATCHES", "catcher")
    if state["Type"] == "Task":
        yield from _endless(state, at)


def _shadowed(handlers: Any, at: str, code: str, what: str) -> Iterator[Finding]:
    """Complain about retriers and catchers that no error can reach."""
    before: list[str] = []
    for place, handler in enumerate(handlers):
        names = handler["ErrorEquals"]
        here = f"{at}[{place}]/ErrorEquals"
        taken = [name for name in names if _is_taken(name, before)]
        if taken and len(taken) == len(names):
            message = f"This {what} never has its turn: earlier ones take {', '.join(taken)} already."
            yield Finding(
                code, "WARNING", here, message, f"Move the {what} up, before the more general one, or remove it."
            )
        elif "States.Runtime" in names:
            message = f"States.Runtime is never retried nor caught, not even by name: this {what} does nothing for it."
            yield Finding(code, "WARNING", here, message, "Prevent it: it comes from paths that find nothing.")
        before.extend(names)


def _is_taken(name: str, before: list[str]) -> bool:
    """Tell whether earlier names leave nothing for this one. A missed heartbeat may be what is left of a wildcard."""
    if name == "States.ALL":
        return "States.ALL" in before
    if name == "States.TaskFailed":
        return name in before
    if name == "States.Timeout":
        # It covers missed heartbeats as well, which HeartbeatTimeout before it does not cover whole.
        return name in before
    return matches(before, HEARTBEAT_TIMEOUT if name == HEARTBEAT_TIMEOUT else name)


def _endless(state: dict[str, Any], at: str) -> Iterator[Finding]:
    """Complain about work that is waited for and may never answer."""
    timeout, beat = state.get("TimeoutSeconds"), state.get("HeartbeatSeconds")
    if isinstance(timeout, int) and isinstance(beat, int) and beat >= timeout:
        message = (
            f"HeartbeatSeconds ({beat}) is not below TimeoutSeconds ({timeout}): a missed heartbeat is never noticed."
        )
        yield Finding("HEARTBEAT_NEVER_MISSED", "WARNING", f"{at}/HeartbeatSeconds", message, "Make it smaller.")
    resource = parse_resource(state["Resource"])
    if resource is None or not (resource.pattern or resource.kind == "activity"):
        return
    if any(f"{field}{path}" in state for field in ("TimeoutSeconds", "HeartbeatSeconds") for path in ("", "Path")):
        return
    if resource.kind == "activity":
        who = "a worker"
    else:
        who = (
            "whoever has the token"
            if resource.pattern == "waitForTaskToken"
            else f"{resource.service}:{resource.action}"
        )
    yield Finding(
        "NO_TIMEOUT",
        "WARNING",
        at,
        f"The state waits for {who} without TimeoutSeconds or HeartbeatSeconds: if no answer comes, for up to a year.",
        "Add TimeoutSeconds: longer than the work ever takes, shorter than you would want to wait.",
    )


def _unseen(value: dict[str, Any]) -> Iterator[Finding]:
    """Complain about tasks whose failure nobody hears of: the pipe deletes the message when the execution has begun."""
    for pointer, block in blocks_of(value):
        if pointer:
            continue
        yield from _unheard(block, pointer)


def _unheard(block: dict[str, Any], pointer: str) -> Iterator[Finding]:
    handlers = _only_after_errors(block)
    for name, state in block["States"].items():
        at = f"{pointer}/States/{escape(name)}"
        if name in handlers or _hears(state):
            continue
        inner = [(f"{at}/Branches[{place}]", branch) for place, branch in enumerate(state.get("Branches", ()))]
        inner += [(f"{at}/{field}", state[field]) for field in ("ItemProcessor", "Iterator") if field in state]
        for place, below in inner:
            yield from _unheard(below, place)
        if state["Type"] == "Task" and not _tells(state):
            yield Finding(
                "NO_FAILURE_NOTICE",
                "WARNING",
                at,
                "If this task fails, the execution fails and nobody is told: the pipe has deleted the message long since.",
                'Add a Catch for States.ALL that leads to a state which tells somebody (say, "sqs:sendMessage" to a queue of failures).',
            )


def _hears(state: dict[str, Any]) -> bool:
    """Tell whether every failure of a task here, or below, is caught."""
    return any({"States.ALL", "States.TaskFailed"} & set(catcher["ErrorEquals"]) for catcher in state.get("Catch", ()))


def _tells(state: dict[str, Any]) -> bool:
    resource = parse_resource(state["Resource"])
    return resource is not None and not resource.pattern and f"{resource.service}:{resource.action}" in _NOTICES


def _only_after_errors(block: dict[str, Any]) -> set[str]:
    """Answer the states that are reached over a Catch only: they are the failure notice."""
    reached: set[str] = set()
    todo = [block["StartAt"]]
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        state = block["States"][name]
        todo += [state[field] for field in ("Next", "Default") if field in state]
        todo += [rule["Next"] for rule in state.get("Choices", ())]
    return set(block["States"]) - reached
