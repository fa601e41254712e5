"""Text that is not what it seems: rendered output that names its source, and templates that nobody rendered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from stallscope.judge.inputs import ProblemKind
from stallscope.load.complaints import Complaint
from stallscope.model.source import ListNode, MapNode, Span, as_str, dig

_HELM_SOURCE = re.compile(r"^# Source: (\S[^\n]*)", re.MULTILINE)

#: Where a template mark breaks YAML: at the start of a line, an item or a value.
_BREAKING = re.compile(r"^[ \t]*(?:- )*(?:[\w./\"'-]+:[ \t]+)?\{[{%]", re.MULTILINE)
_FIRST_MARK = re.compile(r"^(?![ \t]*#)[^\n]*?(\{[{%])", re.MULTILINE)
_HELM = re.compile(r"\{\{[^}\n]{0,200}?(?:\.(?:Values|Release|Chart|Capabilities|Files)\b|\b(?:include|toYaml|tpl) )")
_GO = re.compile(r"\{\{-?\s*(?:[.$]|/\*|(?:if|else|end|range|with|define|template|printf)\b)")

_SAMPLE = 16 * 1024  # characters behind the first mark that say whose template it is

#: A placeholder as the whole or a part of a value: ``$NAME``, ``${NAME}``, ``{{ name }}``. Kubernetes' ``$(NAME)`` is none.
_PLACEHOLDER = re.compile(r"\$\{?[A-Za-z_]\w*|\{\{")

#: Fields that hold whole numbers in every kind that has them; a placeholder there leaves nothing to judge.
_WHOLE_NUMBERS = frozenset(
    {"replicas", "parallelism", "completions", "numNodes", "numProcPerNode", "slotsPerWorker", "minAvailable", "minMember"}
    | {"size", "containerPort"}
)
_IDENTITY = (("metadata", "name"), ("metadata", "namespace"), ("metadata", "generateName"))


class Placeholder(NamedTuple):
    """A value that still waits for a tool to fill it in. `needed`: without it the object cannot be judged."""

    value: str
    span: Span
    needed: bool


def helm_source(text: str, start: int, end: int) -> str:
    """The template named by a ``# Source:`` comment in ``text[start:end]``, the part between ``---`` and the content."""
    if text.find("# Source: ", start, end) < 0:
        return ""
    match = _HELM_SOURCE.search(text, start, end)
    return match.group(1).rstrip() if match else ""


def broken_by_template(text: str, errors: list[int]) -> Complaint | None:
    """The complaint that a text which is not YAML is a template, when marks stand where YAML breaks or on its `errors`."""
    first = _FIRST_MARK.search(text)
    if first is None or not (_BREAKING.search(text) or any(_marked_line(text, at) for at in errors)):
        return None
    return unrendered(text, first.start(1), min(first.start(1) + 2, len(text)))


def unrendered(text: str, start: int, end: int) -> Complaint:
    """The complaint that ``text[start:end]`` waits for a template engine; the hint names the likely one."""
    hint = "render it first and check the result"
    first = _FIRST_MARK.search(text)
    sample = text[first.start(1) : first.start(1) + _SAMPLE] if first else ""
    if not first or text.startswith("$", start):
        what, hint = "a placeholder that was not filled in", "fill it in first: envsubst < FILE | stallscope check -"
    elif "{%" in sample:
        what = "a Jinja template that was not rendered"
    elif _HELM.search(sample):
        what, hint = "a Helm template that was not rendered", "render it first: helm template CHART | stallscope check -"
    elif _GO.search(sample):
        what = "a Go template that was not rendered"
    else:
        what = "a template that was not rendered"
    line = text[start : start + 60].split("\n")[0].strip()
    return Complaint(kind=ProblemKind.UNRENDERED, message=f"{what}: {line}", hint=hint, start=start, end=end, refused=True)


def placeholder_in(manifest: Mapping[str, Any]) -> Placeholder | None:
    """The placeholder of a manifest that matters most: one in a number first, else one in its name or namespace."""
    if as_str(manifest.get("apiVersion")).startswith("argoproj.io/"):  # {{inputs.parameters.x}} is Argo's own
        return None
    for node, key, value in _texts(manifest):
        if key in _WHOLE_NUMBERS and _PLACEHOLDER.search(value):
            return Placeholder(value, node.value_spans[key], needed=True)
    for parent, key in _IDENTITY:
        value = dig(manifest, parent, key)
        if isinstance(value, str) and _PLACEHOLDER.search(value):
            return Placeholder(value, manifest[parent].value_spans[key], needed=False)
    return None


def _texts(tree: Any) -> Iterator[tuple[MapNode, str, str]]:
    """Every text value of every mapping in `tree`."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, MapNode):
            for key, value in node.items():
                if isinstance(value, str):
                    yield node, key, value
                else:
                    pending.append(value)
        elif isinstance(node, ListNode):
            pending += node


def _marked_line(text: str, at: int) -> bool:
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[begin : end if end >= 0 else len(text)]
    return "{{" in line or "{%" in line


def kustomize_origin(annotations: Mapping[str, str], parse: Any) -> str:
    """
    The file a kustomize build took an object from, per its ``config.kubernetes.io`` annotations (kustomize
    `buildMetadata: [originAnnotations]`): ``path``, or ``repo@ref:path``. Empty without them.
    """
    origin = annotations.get("config.kubernetes.io/origin", "")
    if origin:
        body = parse(origin)
        path, repo, ref = (as_str(dig(body, part)) for part in ("path", "repo", "ref"))
        path = path or as_str(dig(body, "configuredIn"))
        if path:
            where = f"{repo}@{ref}" if repo and ref else repo
            return f"{where}:{path}" if where else path
    for name in ("config.kubernetes.io/path", "internal.config.kubernetes.io/path"):
        if annotations.get(name):
            return annotations[name]
    return ""
