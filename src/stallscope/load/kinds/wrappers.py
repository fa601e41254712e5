"""
Objects that hold other objects: AppWrapper components and Argo steps. The object inside keeps its place: its routes are
relative to it, and locations still point into the wrapper's file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stallscope.judge.inputs import ProblemKind
from stallscope.load.kinds.context import Context
from stallscope.load.stream import parse_stream
from stallscope.model.kube import KubeObject, from_body
from stallscope.model.source import ListNode, MapNode, Route, Span, as_list, as_map, as_str, dig, span_of

_PARAMETER = re.compile(r"\{\{\s*=?\s*([\w.\-]+)\s*\}\}")
_KINDS = re.compile(r"^\s*kind:\s*[\"']?(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """An object found inside `wrapper`, at `route` of it."""

    obj: KubeObject
    wrapper: KubeObject
    route: Route


def open_appwrapper(_: Context, obj: KubeObject) -> Iterator[Inner]:
    """``spec.components[].template`` of workload.codeflare.dev; the namespace is the AppWrapper's."""
    for index, component in enumerate(as_list(obj.get("spec", "components"))):
        body = dig(component, "template")
        if isinstance(body, Mapping):
            yield _inside(obj, body, ("spec", "components", index, "template"))


def open_workflow(ctx: Context, obj: KubeObject) -> Iterator[Inner]:
    """
    Manifests of ``resource`` templates in an Argo Workflow, WorkflowTemplate, ClusterWorkflowTemplate or CronWorkflow.
    Parameters are filled in with the values the workflow itself gives; positions point at the whole block.
    """
    base: Route = ("spec", "workflowSpec") if obj.kind == "CronWorkflow" else ("spec",)
    values = {f"workflow.parameters.{n}": v for n, v in _parameters(obj.get(*base, "arguments"))}
    values |= {"workflow.name": obj.name, "workflow.namespace": obj.namespace}
    for index, item in enumerate(as_list(obj.get(*base, "templates"))):
        route = (*base, "templates", index, "resource", "manifest")
        text = dig(item, "resource", "manifest")
        if isinstance(text, str) and text.strip():
            inputs = {f"inputs.parameters.{n}": v for n, v in _parameters(dig(item, "inputs"))}
            yield from _from_text(ctx, obj, route, _filled(text, {**values, **inputs}))


def _parameters(value: Any) -> Iterator[tuple[str, str]]:
    for item in as_list(dig(value, "parameters")):
        name, given = as_str(dig(item, "name")), dig(item, "value")
        given = dig(item, "default") if given is None else given
        if name and isinstance(given, (str, int, float)):
            yield name, str(given)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with known parameters in place; unknown ones become ``$(name)``, which is YAML and still a placeholder."""
    return _PARAMETER.sub(lambda m: values.get(m.group(1), f"$({m.group(1)})"), text)


def _from_text(ctx: Context, obj: KubeObject, route: Route, text: str) -> Iterator[Inner]:
    bodies, trouble = _parsed(ctx, text)
    if trouble:
        kind = ProblemKind.UNRENDERED if "{{" in text else ProblemKind.UNREADABLE
        inside = _KINDS.search(text)
        what = f"the manifest of {inside.group(1)} in it" if inside else "the manifest in it"
        ctx.problem(kind, obj, route, f"{what} cannot be read: {trouble}", "check the rendered object instead")
    span = span_of(obj.body, route, key=False)
    for body in bodies:
        if isinstance(body, Mapping):
            yield _inside(obj, as_map(placed(body, span)), route)


def _parsed(ctx: Context, text: str) -> tuple[list[Any], str]:
    if ctx.parse is not None:
        return list(ctx.parse(text)), ""
    documents, problems = parse_stream(text)
    return [d.value for d in documents if d.value is not None], problems[0].message if problems else ""


def placed(tree: Any, span: Span) -> Any:
    """A copy of `tree` in which every key and item stands at `span`: the block of text it was written in."""
    if isinstance(tree, Mapping):
        node = MapNode()
        node.update({str(k): placed(v, span) for k, v in tree.items()})
        node.span = span
        node.key_spans = dict.fromkeys(node, span)
        node.value_spans = dict.fromkeys(node, span)
        return node
    if isinstance(tree, list):
        items = ListNode()
        items.extend(placed(v, span) for v in tree)
        items.span = span
        items.item_spans = [span] * len(items)
        return items
    return tree


def _inside(wrapper: KubeObject, body: Mapping[str, Any], route: Route) -> Inner:
    inner = from_body(
        body,
        namespace=wrapper.namespace,
        file=wrapper.file,
        document=wrapper.document,
        prefix=(*wrapper.prefix, *route),
    )
    return Inner(obj=inner, wrapper=wrapper, route=route)
