"""What every kind needs while it expands: the other objects, and a place to leave problems."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route, as_list, as_map, as_str, as_str_map, dig
from stallscope.model.workload import Overlay, PodTemplate

#: int32, the type of every replica count in the Kubernetes API.
MAX_COUNT = 2**31 - 1

_MARK = re.compile(r"\$[{(]?\w|\{\{|\}\}|<[A-Za-z][^<>\n]{0,60}>|%\(?\w+\)?s|\b__\w+__\b|^[A-Z][A-Z0-9]*_[A-Z0-9_]+$")

#: Reads a text block that holds manifests (Argo `resource` templates): the bodies in it, or nothing when it is no YAML.
ParseBlock = Callable[[str], Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The objects of one input, by (group, kind); `problems` collects what the kinds find wrong."""

    by_kind: Mapping[tuple[str, str], tuple[KubeObject, ...]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    parse: ParseBlock | None = None

    def of(self, group: str, kind: str) -> tuple[KubeObject, ...]:
        return self.by_kind.get((group, kind), ())

    def find(self, group: str, kind: str, name: str, namespace: str | None = None) -> KubeObject | None:
        """The object of that identity; `namespace` ``None`` for cluster-scoped kinds. The last one read wins."""
        found = [o for o in self.of(group, kind) if o.name == name and namespace in (None, o.namespace)]
        return found[-1] if found else None

    def problem(self, kind: ProblemKind, obj: KubeObject, route: Route, message: str, hint: str = "") -> None:
        self.problems.append(
            Problem(kind=kind, message=f"{obj.ref}: {message}", location=obj.at(*route), hint=hint, subject=obj.ref)
        )


def context_of(objects: Sequence[KubeObject], parse: ParseBlock | None = None) -> Context:
    """Index `objects`."""
    index: dict[tuple[str, str], list[KubeObject]] = {}
    for item in objects:
        index.setdefault((item.group, item.kind), []).append(item)
    return Context(by_kind={key: tuple(found) for key, found in index.items()}, parse=parse)


def placeholder(value: Any) -> bool:
    """True for text that still waits for a tool to fill it in: ``$NUM_NODES``, ``{{ .n }}``, ``<n>``, ``NUM_NODES``."""
    return isinstance(value, str) and _MARK.search(value) is not None


def count(
    ctx: Context, obj: KubeObject, route: Route, *, default: int | None, minimum: int = 0, maximum: int = MAX_COUNT
) -> int | None:
    """
    A whole number at `route` as the API server reads it: absent or null is `default`; ``None`` after reporting one problem
    when it is anything else (text, fraction, negative), because the API server would refuse the object.
    """
    value = obj.get(*route)
    if value is None:
        return default
    path = dotted(route)
    if placeholder(value):
        ctx.problem(
            ProblemKind.UNRENDERED,
            obj,
            route,
            f"{path} is the placeholder {shown(value)}, not a number",
            "render it first (envsubst, helm template, kustomize build) and check the result",
        )
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        ctx.problem(
            ProblemKind.INVALID,
            obj,
            route,
            f"{path} must be a whole number, found {describe(value)}",
            "write it without quotes" if isinstance(value, str) and value.strip().lstrip("+-").isdigit() else "",
        )
        return None
    if not minimum <= value <= maximum:
        limits = f"at least {minimum}" if value < minimum else f"at most {maximum}"
        ctx.problem(ProblemKind.INVALID, obj, route, f"{path} must be {limits}, found {shown(value)}")
        return None
    return value


def template(
    ctx: Context,
    obj: KubeObject,
    route: Route,
    *,
    optional: bool = False,
    overlay: Overlay | None = None,
) -> PodTemplate | None:
    """
    The pod template at `route`. ``None`` after reporting one problem when nobody could start pods from it (no mapping, no
    containers); silently ``None`` when it is absent and `optional`.
    """
    value = obj.get(*route)
    if value is None and optional:
        return None
    path = dotted(route)
    if not isinstance(value, Mapping):
        kind = ProblemKind.UNRENDERED if placeholder(value) else ProblemKind.INVALID
        what = "is missing" if value is None else f"must be a pod template, found {describe(value)}"
        ctx.problem(kind, obj, route, f"{path} {what}")
        return None
    spec = as_map(value.get("spec"))
    if not any(isinstance(c, Mapping) for c in as_list(spec.get("containers"))):
        ctx.problem(ProblemKind.INVALID, obj, (*route, "spec", "containers"), f"{path}.spec has no containers")
        return None
    return PodTemplate(
        labels=as_str_map(dig(value, "metadata", "labels")),
        annotations=as_str_map(dig(value, "metadata", "annotations")),
        spec=spec,
        source=obj,
        route=route,
        overlay=overlay,
    )


def named_items(obj: KubeObject, *route: str | int) -> list[tuple[int, str, Mapping[str, Any]]]:
    """Index, name and body of the mappings in a list keyed by name; items without a usable name are left out."""
    items = enumerate(as_list(obj.get(*route)))
    return [
        (i, as_str(item.get("name")), item) for i, item in items if isinstance(item, Mapping) and as_str(item.get("name"))
    ]


def dotted(route: Route) -> str:
    """``spec.tasks[0].replicas``, as people write paths."""
    text = ""
    for step in route:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def describe(value: Any) -> str:
    """A value in an error message: its type in plain words, and the text itself when it is short."""
    if isinstance(value, str):
        return f"the text {shown(value)}"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (int, float)):
        return f"the number {shown(value)}"
    return "a list" if isinstance(value, Sequence) else f"a {type(value).__name__}"


def shown(value: Any, limit: int = 40) -> str:
    """`value` on one line, cut at `limit` characters; text is quoted."""
    text = " ".join(str(value)[: limit * 4].split())
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return f'"{text}"' if isinstance(value, str) else text
