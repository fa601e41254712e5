"""
The same change as RFC 6902 JSON patches, one an object, with test operations: a patch made for a manifest that has changed
since must fail, not land beside its target. Merge patches cannot say it (they replace whole lists, placement.md §2.9).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stallscope.model.source import Route, as_str, dig
from stallscope.remedy.ops import same
from stallscope.remedy.templates import plain

Operation = dict[str, Any]
_NAMES = ("name", "groupName", "manager")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPatch:
    """The operations for one API object; `namespace` is empty when the manifest names none."""

    file: str
    api_version: str
    kind: str
    name: str
    namespace: str
    operations: tuple[Operation, ...]

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


def object_patches(file: str, before: Sequence[Any], after: Sequence[Any]) -> tuple[ObjectPatch, ...]:
    """Patches of the changed objects of a file; `before` and `after` are its documents. More at the end are no changes."""
    found: list[ObjectPatch] = []
    for old, new in zip(before, after, strict=False):
        if same(old, new):
            continue
        for route, body in _objects(old, ()):
            changed = dig(new, *route) if route else new
            if not same(body, changed):
                found.append(_patch(file, body, changed))
    return tuple(found)


def added_documents(before: Sequence[Any], after: Sequence[Any]) -> tuple[Mapping[str, Any], ...]:
    """The objects that the change adds."""
    known = len([d for d in before if d is not None])
    return tuple(plain(d) for d in [d for d in after if d is not None][known:])


def _objects(body: Any, route: Route) -> Iterator[tuple[Route, Any]]:
    """The API objects of a document: itself, or the items of a List."""
    items = dig(body, "items")
    if as_str(dig(body, "kind")).endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            yield from _objects(item, (*route, "items", index))
    elif isinstance(body, Mapping):
        yield route, body


def _patch(file: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> ObjectPatch:
    tests: list[Operation] = [_test("/kind", old.get("kind"))]
    if dig(old, "metadata", "name") is not None:
        tests.append(_test("/metadata/name", dig(old, "metadata", "name")))
    changes: list[Operation] = []
    _compare(old, new, "", tests, changes)
    return ObjectPatch(
        file=file,
        api_version=as_str(old.get("apiVersion")),
        kind=as_str(old.get("kind")),
        name=as_str(dig(old, "metadata", "name")),
        namespace=as_str(dig(old, "metadata", "namespace")),
        operations=(*_unique(tests), *changes),
    )


def _compare(old: Any, new: Any, at: str, tests: list[Operation], changes: list[Operation]) -> None:
    if same(old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key, value in new.items():
            if key in old:
                _compare(old[key], value, f"{at}/{_escape(key)}", tests, changes)
            else:
                changes.append({"op": "add", "path": f"{at}/{_escape(key)}", "value": plain(value)})
    elif isinstance(old, list) and isinstance(new, list):
        _compare_lists(old, new, at, tests, changes)
    else:
        tests.append(_test(at, old))
        changes.append({"op": "replace", "path": at, "value": plain(new)})


def _compare_lists(old: list[Any], new: list[Any], at: str, tests: list[Operation], changes: list[Operation]) -> None:
    for index, value in enumerate(old):
        if not same(value, new[index]):
            name = next((k for k in _NAMES if as_str(dig(value, k))), None)
            if name:
                tests.append(_test(f"{at}/{index}/{name}", value[name]))
            _compare(value, new[index], f"{at}/{index}", tests, changes)
    if len(new) > len(old):
        tests.append(_test(at, old))
        changes += [{"op": "add", "path": f"{at}/-", "value": plain(v)} for v in new[len(old) :]]


def _test(path: str, value: Any) -> Operation:
    return {"op": "test", "path": path, "value": plain(value)}


def _unique(tests: Sequence[Operation]) -> list[Operation]:
    found: list[Operation] = []
    for test in tests:
        if test not in found:
            found.append(test)
    return found


def _escape(key: str) -> str:
    """A key as a JSON pointer token (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
