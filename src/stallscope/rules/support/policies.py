"""Policy objects as written: their selectors and the lines a finding should point at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from stallscope.findings import Label
from stallscope.judge.result import JobJudgement, Judgement
from stallscope.model.kube import KubeObject
from stallscope.model.labels import Selector, parse_selector
from stallscope.model.source import Location, Route, as_list, as_map, dig
from stallscope.model.traffic import RuleRef
from stallscope.model.workload import Role
from stallscope.policy.identity import label_filter
from stallscope.rules.support.words import label

#: Selector of the pods a policy is about, by kind and position of the rule body.
_SUBJECTS = ("podSelector", "endpointSelector", "nodeSelector")
_SOURCES = ("k8s:", "any:")
_MAX_DEPTH = 24
TOPOLOGY = "topology.kubernetes.io/"
#: KEP-4742: the API server copies zone and region to pods at binding by default from this release on.
ZONE_LABELS_SINCE = (1, 35)


class Mention(NamedTuple):
    """One label key named by a selector of a policy. `subject`: in the selector of the pods the policy is about."""

    policy: KubeObject
    key: str
    operator: str
    values: tuple[str, ...]
    route: Route
    subject: bool

    @property
    def location(self) -> Location:
        return self.policy.at(*self.route)


def bare_key(key: str) -> str:
    """A Cilium selector key without its label source (``k8s:app`` -> ``app``)."""
    return next((key.removeprefix(s) for s in _SOURCES if key.startswith(s)), key)


def mentions(policy: KubeObject) -> Iterator[Mention]:
    """Every label key a policy's selectors name, wherever they stand in the object."""
    for key in ("spec", "specs"):
        yield from _walk(policy, policy.get(key), (key,), 0)


def policy_named(judgement: Judgement, ref: str) -> KubeObject | None:
    """The policy object of that ``Kind namespace/name``, if it was read."""
    return next((p for p in judgement.policies.policies if p.ref == ref), None)


def subject_selectors(policy: KubeObject) -> Iterator[tuple[Selector, Route]]:
    """The selectors of the pods a policy is about, with Cilium's label sources removed, and where they stand."""
    bodies: list[tuple[Any, Route]] = [(policy.get("spec"), ("spec",))]
    bodies += [(s, ("specs", i)) for i, s in enumerate(as_list(policy.get("specs")))]
    for body, route in bodies:
        for name in _SUBJECTS[:2]:
            selector = parse_selector(as_map(body).get(name))
            if selector is not None:
                requirements = tuple(type(r)(bare_key(r.key), r.operator, r.values) for r in selector.requirements)
                yield Selector(requirements), (*route, name)


def ports_place(judgement: Judgement, rule: RuleRef) -> Location:
    """The ports of an allow rule (``ports``/``toPorts``), or the rule itself."""
    policy = policy_named(judgement, rule.policy)
    if policy is None or rule.index < 0:
        return rule.location
    base: Route = ("specs", rule.spec) if policy.get("specs") and not policy.get("spec") else ("spec",)
    for name in ("ports", "toPorts"):
        if policy.get(*base, rule.section, rule.index, name) is not None:
            return policy.at(*base, rule.section, rule.index, name)
    return rule.location


def label_lines(judgement: Judgement, rules: Sequence[RuleRef], roles: Sequence[Role]) -> Iterator[Label]:
    """The pod-template labels that the named policies' selectors look at: one label line a role."""
    keys = {m.key for rule in rules if (p := policy_named(judgement, rule.policy)) is not None for m in mentions(p)}
    for role in roles:
        hit = next((k for k in role.template.labels if k in keys), None)
        if hit is None:
            continue
        text = f"{role.name} pods carry {hit}={role.template.labels[hit]}"
        yield label(role.template.at("metadata", "labels", hit), text)


def zone_conditional(judgement: Judgement, judged: JobJudgement, rules: Sequence[RuleRef]) -> bool:
    """
    True when no placement was judged and one of the named policies looks at zone labels that pods only get when they are
    bound (KEP-4742): the verdict is then a question, not an answer (STL216).
    """
    if judged.witness is not None or judgement.facts.kubernetes_version < ZONE_LABELS_SINCE:
        return False
    return any(zone_mention(judgement, p) for r in rules if (p := policy_named(judgement, r.policy)) is not None)


def zone_mention(judgement: Judgement, policy: KubeObject) -> Mention | None:
    """The first selector of a policy on a topology label that this engine really sees on pods."""
    options = judgement.policies.options
    keep = label_filter(options.version, options.options.get("labels", ""))
    for mention in mentions(policy):
        if mention.key.startswith(TOPOLOGY) and "nodeSelector" not in mention.route:
            return mention if options.cni != "cilium" or keep.keeps(mention.key) else None
    return None


def _walk(policy: KubeObject, value: Any, route: Route, depth: int) -> Iterator[Mention]:
    if depth > _MAX_DEPTH:
        return
    for key, inner in as_map(value).items():
        here: Route = (*route, key)
        if key == "matchLabels":
            for name, wanted in as_map(inner).items():
                yield Mention(policy, bare_key(str(name)), "In", (str(wanted),), (*here, str(name)), _is_subject(route))
        elif key == "matchExpressions":
            for i, item in enumerate(as_list(inner)):
                values = tuple(str(v) for v in as_list(dig(item, "values")))
                name, operator = bare_key(str(dig(item, "key", default=""))), str(dig(item, "operator", default=""))
                yield Mention(policy, name, operator, values, (*here, i), _is_subject(route))
        else:
            yield from _walk(policy, inner, here, depth + 1)
    for i, inner in enumerate(as_list(value)):
        yield from _walk(policy, inner, (*route, i), depth + 1)


def _is_subject(route: Route) -> bool:
    """True for ``spec.podSelector`` and its like, not for selectors inside rules."""
    steps = [s for s in route if isinstance(s, str)]
    return len(steps) == 2 and steps[1] in _SUBJECTS
