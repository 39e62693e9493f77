"""Operations on rules and their targets."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tasuki.rules.escapes import escaped_attributes
from tasuki.rules.expressions import BadExpression, parse_expression
from tasuki.services.buses import queries as sql
from tasuki.services.buses.errors import LimitExceededException, ValidationException
from tasuki.services.buses.model import DEFAULT, Bus, Rule
from tasuki.services.buses.paging import after_token, with_token
from tasuki.services.buses.polls import plan
from tasuki.services.buses.putting import check_pattern
from tasuki.services.buses.shelf import find_rule, kept_bus, rules_changed, the_bus, the_rule
from tasuki.services.buses.tagging import check_tags
from tasuki.services.buses.targets import compile_target, unoffered
from tasuki.services.switchboard import Switchboard
from tasuki.store.store import Tx
from tasuki.values.documents import dumps, loads
from tasuki.values.operations import Operation, Operations, Request

log = logging.getLogger("tasuki.buses")

DEFAULT_QUOTA = 300
"""Rules of a bus (quota "Rules"); `[quotas] event_rules` in the configuration."""
MOST_TARGETS = 5
PAGE_SIZE = 100


class RulesApi:
    """The operations, with what they need of the house."""

    def __init__(self, quota: int, switchboard: Switchboard) -> None:
        self._quota, self._switchboard = quota, switchboard

    def operations(self) -> Operations:
        """Answer the table of operations."""
        writes: dict[str, Callable[[Tx, Request], dict[str, Any]]] = {
            "PutRule": self.put_rule,
            "DeleteRule": delete_rule,
            "EnableRule": lambda tx, request: _set_state(tx, request, "ENABLED"),
            "DisableRule": lambda tx, request: _set_state(tx, request, "DISABLED"),
            "PutTargets": self.put_targets,
            "RemoveTargets": remove_targets,
        }
        reads: dict[str, Callable[[Tx, Request], dict[str, Any]]] = {
            "DescribeRule": describe_rule,
            "ListRules": list_rules,
            "ListRuleNamesByTarget": list_rule_names_by_target,
            "ListTargetsByRule": list_targets_by_rule,
        }
        return {
            **{name: Operation("write", run) for name, run in writes.items()},
            **{name: Operation("read", run) for name, run in reads.items()},
        }

    def put_rule(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Make a rule, or say anew what it is: what is not given is as if it had never been given. Its targets and tags stay.

        Raises `ValidationException`, `InvalidEventPatternException`, `ResourceNotFoundException`, `LimitExceededException`.
        """
        given = request.input
        found = the_bus(tx, request, given.get("EventBusName"))
        pattern, schedule = given.get("EventPattern") or None, given.get("ScheduleExpression") or None
        _check(found, pattern, schedule)
        tx.alone()
        bus = kept_bus(tx, found)
        before = find_rule(tx, bus, given["Name"])
        facts = (given.get("State", "ENABLED"), pattern, schedule, given.get("Description"), given.get("RoleArn"))
        if before is None:
            check_tags(given.get("Tags") or [])
            count = tx.one(sql.COUNT_RULES, (bus.id,))
            if count is not None and count[0] >= self._quota:
                raise LimitExceededException
            tags = dumps(given.get("Tags") or [])
            tx.one(sql.ADD_RULE, (bus.id, given["Name"], *facts, tags, tx.now))
        else:
            tx.run(sql.UPDATE_RULE, (*facts, before.id))
        rule = the_rule(tx, bus, given["Name"])
        goes_on = (
            before is not None and before.is_enabled and before.schedule == rule.schedule and before.tick is not None
        )
        if not goes_on or not rule.is_enabled:  # the same schedule keeps its times
            plan(tx, rule, tx.now)
        rules_changed(tx, bus)
        return {"RuleArn": rule.arn}

    def put_targets(self, tx: Tx, request: Request) -> dict[str, Any]:
        """Add targets to a rule, or say anew what they are. One that could never be reached here is a failed entry.

        Raises `ResourceNotFoundException`, `LimitExceededException`, `ValidationException`.
        """
        given = request.input
        bus = the_bus(tx, request, given.get("EventBusName"))
        rule = the_rule(tx, bus, given["Rule"])
        targets = {target["Id"]: target for target in given["Targets"]}
        known = {name for name, _ in tx.all(sql.TARGETS, (rule.id, "", MOST_TARGETS))}
        if len(known | set(targets)) > MOST_TARGETS:
            raise LimitExceededException
        failed = []
        tx.alone()
        for name, target in targets.items():
            why = unoffered(target, self._switchboard.targets)
            if why is not None:
                failed.append({"TargetId": name, "ErrorCode": "ValidationException", "ErrorMessage": why})
                continue
            compile_target(target, rule.arn, rule.name)
            _warn_of_escapes(rule, target)
            tx.run(sql.PUT_TARGET, (rule.id, name, bus.id, target["Arn"], dumps(target)))
        rules_changed(tx, bus)
        return {"FailedEntryCount": len(failed), "FailedEntries": failed}


def _check(bus: Bus, pattern: str | None, schedule: str | None) -> None:
    if pattern is None and schedule is None:
        raise ValidationException("Parameter(s) EventPattern or ScheduleExpression must be specified.")
    if schedule is not None:
        if bus.name != DEFAULT:
            raise ValidationException("ScheduleExpression is supported only on the default event bus.")
        try:
            parse_expression(schedule, "rule")
        except BadExpression as bad:
            log.info("ScheduleExpression refused: %s", bad)
            raise ValidationException("Parameter ScheduleExpression is not valid.") from None
    if pattern is not None:
        check_pattern(pattern)


def _warn_of_escapes(rule: Rule, target: Mapping[str, Any]) -> None:
    """Reserved variables that an encoder escaped are never replaced: say so now, not when the target wonders."""
    texts = {"Input": target.get("Input"), "InputTemplate": (target.get("InputTransformer") or {}).get("InputTemplate")}
    for field, text in texts.items():
        if escaped := escaped_attributes(text or ""):
            log.warning(
                "rule %s, target %s: %s holds %s escaped (\\u003c), as jsonencode writes it; it stays as it is. Write < and >.",
                rule.arn,
                target["Id"],
                field,
                ", ".join(escaped),
            )


def delete_rule(tx: Tx, request: Request) -> dict[str, Any]:
    """Delete a rule; one that isn't there is no error. Raises `ValidationException` for one that has targets."""
    bus = the_bus(tx, request, request.input.get("EventBusName"))
    rule = find_rule(tx, bus, request.input["Name"])
    if rule is None:
        return {}
    tx.alone()
    if tx.one(sql.ANY_TARGET, (rule.id,)) is not None:
        raise ValidationException("Rule can't be deleted since it has targets.")
    plan(tx, replace(rule, schedule=None), tx.now)
    tx.run(sql.DROP_RULE, (rule.id,))
    rules_changed(tx, bus)
    return {}


def describe_rule(tx: Tx, request: Request) -> dict[str, Any]:
    """Describe a rule. Raises `ResourceNotFoundException`."""
    rule = the_rule(tx, the_bus(tx, request, request.input.get("EventBusName")), request.input["Name"])
    return {**rule.listed(), "CreatedBy": rule.bus.account}


def list_rules(tx: Tx, request: Request) -> dict[str, Any]:
    """List a bus's rules by name. Raises `ResourceNotFoundException`."""
    given = request.input
    bus = the_bus(tx, request, given.get("EventBusName"))
    prefix, limit = given.get("NamePrefix", ""), given.get("Limit", PAGE_SIZE)
    query, after = after_token(tx, request, "ListRules", bus.id, prefix)
    rules = [Rule.of(bus, row) for row in tx.all(sql.RULES, (bus.id, after, prefix, prefix, limit + 1))]
    last = rules[limit - 1].name if len(rules) > limit else ""
    return with_token(tx, query, {"Rules": [rule.listed() for rule in rules[:limit]]}, last)


def list_rule_names_by_target(tx: Tx, request: Request) -> dict[str, Any]:
    """List the rules of a bus that have a target. Raises `ResourceNotFoundException`."""
    given = request.input
    bus = the_bus(tx, request, given.get("EventBusName"))
    target, limit = given["TargetArn"], given.get("Limit", PAGE_SIZE)
    query, after = after_token(tx, request, "ListRuleNamesByTarget", bus.id, target)
    names = [row[0] for row in tx.all(sql.RULES_BY_TARGET, (bus.id, target, after, limit + 1))]
    return with_token(tx, query, {"RuleNames": names[:limit]}, names[limit - 1] if len(names) > limit else "")


def list_targets_by_rule(tx: Tx, request: Request) -> dict[str, Any]:
    """List a rule's targets as they were put. Raises `ResourceNotFoundException`."""
    given = request.input
    rule = the_rule(tx, the_bus(tx, request, given.get("EventBusName")), given["Rule"])
    limit = given.get("Limit", PAGE_SIZE)
    query, after = after_token(tx, request, "ListTargetsByRule", rule.id)
    rows = tx.all(sql.TARGETS, (rule.id, after, limit + 1))
    last = rows[limit - 1][0] if len(rows) > limit else ""
    return with_token(tx, query, {"Targets": [loads(document) for _, document in rows[:limit]]}, last)


def remove_targets(tx: Tx, request: Request) -> dict[str, Any]:
    """Take targets away from a rule; what it never had is no error. Raises `ResourceNotFoundException`."""
    given = request.input
    bus = the_bus(tx, request, given.get("EventBusName"))
    rule = the_rule(tx, bus, given["Rule"])
    tx.alone()
    tx.many(sql.DROP_TARGET, [(rule.id, name) for name in given["Ids"]])
    rules_changed(tx, bus)
    return {"FailedEntryCount": 0, "FailedEntries": []}


def _set_state(tx: Tx, request: Request, state: str) -> dict[str, Any]:
    """EnableRule, DisableRule. A rate that is enabled again counts from then. Raises `ResourceNotFoundException`."""
    bus = the_bus(tx, request, request.input.get("EventBusName"))
    before = the_rule(tx, bus, request.input["Name"])
    tx.alone()
    tx.run(sql.SET_STATE, (state, before.id))
    rule = the_rule(tx, bus, before.name)
    if rule.is_enabled != before.is_enabled:
        plan(tx, rule, tx.now)
    rules_changed(tx, bus)
    return {}
