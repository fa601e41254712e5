"""
What a fix does to a YAML document, as data: set a key, append an item, replace a scalar, add a document.

An operation names a place by file, document index and route from the document's root. `apply` gives the intended tree;
`stallscope.remedy.patch` makes the text say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stallscope.errors import PatchRefused
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route


@dataclass(frozen=True, slots=True, kw_only=True)
class SetKey:
    """
    Give the mapping at `route[:-1]` the key `route[-1]`; missing mappings on the way are created.

    A key that is absent, null or an empty collection is set; an equal value is left alone; any other value is a
    conflict (PatchRefused). `first` names a key on the route that, when new, goes before its siblings (the top of a pod
    spec shows a reader which template it is; the bottom, below all containers, does not).
    """

    file: str
    document: int
    route: Route
    value: Any
    first: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendItem:
    """
    Append `item` to the list at `route` (created when absent or null). An item that is there is not added again: an equal
    one, or, with `by`, one that has the same values under those keys.
    """

    file: str
    document: int
    route: Route
    item: Any
    first: str = ""
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceScalar:
    """Replace the scalar at `route`, which must be `old` now."""

    file: str
    document: int
    route: Route
    old: Any
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AddDocument:
    """Append a document to `file`, which is created when it does not exist. `comment` lines precede it."""

    file: str
    body: Mapping[str, Any]
    comment: str = ""


Edit = SetKey | AppendItem | ReplaceScalar
Op = Edit | AddDocument


def set_key(obj: KubeObject, route: Route, value: Any, *, first: str = "") -> SetKey:
    """`SetKey` at a route of an object."""
    return SetKey(file=obj.file, document=obj.document, route=(*obj.prefix, *route), value=value, first=first)


def append_item(obj: KubeObject, route: Route, item: Any, *, first: str = "", by: tuple[str, ...] = ()) -> AppendItem:
    """`AppendItem` at a route of an object."""
    return AppendItem(file=obj.file, document=obj.document, route=(*obj.prefix, *route), item=item, first=first, by=by)


def replace_scalar(obj: KubeObject, route: Route, old: Any, value: Any) -> ReplaceScalar:
    """`ReplaceScalar` at a route of an object."""
    return ReplaceScalar(file=obj.file, document=obj.document, route=(*obj.prefix, *route), old=old, value=value)


def apply(tree: Any, edit: Edit) -> Any:
    """
    The tree `edit` intends. Untouched parts are the same Python objects, so that `is` tells what an edit left alone.

    Raises PatchRefused when the route leads through a list index that does not exist or a value of another type, or
    when a different value is already there.
    """
    match edit:
        case SetKey(route=route, value=value, first=first):
            return _update(tree, route, lambda old: _set(old, value, route), first=first)
        case AppendItem(route=route, item=item, first=first, by=by):
            return _update(tree, route, lambda old: _append(old, item, route, by), first=first)
        case ReplaceScalar(route=route, old=expected, value=value):
            return _update(tree, route, lambda old: _replace(old, expected, value, route), create=False)


def replaced(tree: Any, route: Route, value: Any) -> Any:
    """`tree` with another scalar at `route`, whatever is there now. Raises PatchRefused when nothing is."""
    return _update(tree, route, lambda old: old if same(old, value) else value, create=False)


class _Absent:
    """Marks a key that is not there, which differs from one that is null."""


_ABSENT = _Absent()


def _update(tree: Any, route: Route, change: Any, *, first: str = "", create: bool = True, depth: int = 0) -> Any:
    if depth == len(route):
        return change(tree)
    step = route[depth]
    if isinstance(step, int):
        if isinstance(tree, Sequence) and not isinstance(tree, str) and 0 <= step < len(tree):
            new = _update(tree[step], route, change, first=first, create=create, depth=depth + 1)
            return tree if new is tree[step] else [*tree[:step], new, *tree[step + 1 :]]
        raise PatchRefused(f"{show_route(route[: depth + 1])} does not exist")
    if tree is None or isinstance(tree, _Absent):
        if not create:
            raise PatchRefused(f"{show_route(route[: depth + 1])} does not exist")
        tree = {}
    if not isinstance(tree, Mapping):
        what = "a text that holds a manifest" if isinstance(tree, str) and "\n" in tree else "no mapping"
        raise PatchRefused(f"{show_route(route[:depth])} is {what}")
    old = tree.get(step, _ABSENT)
    new = _update(old, route, change, first=first, create=create, depth=depth + 1)
    if new is old:
        return tree
    if first == step and isinstance(old, _Absent):
        return {step: new, **tree}
    return {**tree, step: new}


def _set(old: Any, value: Any, route: Route) -> Any:
    if isinstance(old, _Absent) or old is None or (old in ({}, []) and isinstance(value, Mapping | list)):
        return value
    if same(old, value):
        return old
    raise PatchRefused(f"{show_route(route)} is already set to something else")


def _append(old: Any, item: Any, route: Route, by: tuple[str, ...]) -> Any:
    if isinstance(old, _Absent) or old is None:
        return [item]
    if not isinstance(old, list):
        raise PatchRefused(f"{show_route(route)} is no list")
    return old if any(is_it(item, known, by) for known in old) else [*old, item]


def is_it(item: Any, known: Any, by: tuple[str, ...]) -> bool:
    """Whether `known` is the item meant: equal, or equal under the keys `by`."""
    if by and isinstance(known, Mapping):
        return all(same(item.get(key), known.get(key)) for key in by)
    return same(item, known)


def _replace(old: Any, expected: Any, value: Any, route: Route) -> Any:
    if not same(old, expected):
        raise PatchRefused(f"{show_route(route)} is not {expected!r}")
    return value


def same(left: Any, right: Any) -> bool:
    """Equality that tells ``true`` from 1 and 1 from 1.0, as YAML and JSON do."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(v, right[k]) for k, v in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if left != left and right != right:
        return True
    return type(left) is type(right) and bool(left == right)


def show_route(route: Route) -> str:
    """``spec.tasks[0].template``; keys with dots are quoted."""
    text = ""
    for step in route:
        if isinstance(step, int):
            text += f"[{step}]"
        elif "." in step or "/" in step:
            text += f'["{step}"]'
        else:
            text += f".{step}" if text else step
    return text or "the document"
