"""Where a plan is made: the operations so far, and what the objects look like with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stallscope.model.kube import KubeObject
from stallscope.model.source import Route, dig
from stallscope.remedy import ops
from stallscope.remedy.ops import AddDocument, Edit, Op

_Place = tuple[str, int, Route]


@dataclass(slots=True)
class Bench:
    """
    Operations are tried on the objects as they are recorded, so that a conflict (PatchRefused) shows while there is still
    another way, and later operations see earlier ones. `fork` before trying; keep the fork that worked.
    """

    done: list[Op] = field(default_factory=list)
    _bodies: dict[_Place, Any] = field(default_factory=dict)

    def fork(self) -> Bench:
        return Bench(list(self.done), dict(self._bodies))

    def adopt(self, other: Bench) -> None:
        """Become what a fork has become."""
        self.done, self._bodies = other.done, other._bodies

    def get(self, obj: KubeObject, *route: str | int) -> Any:
        """The value at a route of the object, as it will be."""
        return dig(self._bodies.get(_place(obj), obj.body), *route)

    def set(self, obj: KubeObject, route: Route, value: Any, *, first: str = "") -> None:
        self._do(obj, ops.set_key(obj, route, value, first=first))

    def append(self, obj: KubeObject, route: Route, item: Any, *, first: str = "", by: tuple[str, ...] = ()) -> int:
        """Append an item unless it is there; its index."""
        edit = ops.append_item(obj, route, item, first=first, by=by)
        self._do(obj, edit)
        found: list[Any] = self.get(obj, *route)
        return next(i for i, known in enumerate(found) if ops.is_it(item, known, by))

    def replace(self, obj: KubeObject, route: Route, value: Any) -> None:
        """Replace the scalar at `route`."""
        old = self.get(obj, *route)
        if not ops.same(old, value):
            self._do(obj, ops.replace_scalar(obj, route, old, value))

    def add_document(self, file: str, body: Mapping[str, Any], comment: str = "") -> None:
        self.done.append(AddDocument(file=file, body=body, comment=comment))

    def _do(self, obj: KubeObject, edit: Edit) -> None:
        body = self._bodies.get(_place(obj), obj.body)
        new = ops.apply(body, _local(edit, len(obj.prefix)))
        if new is not body:
            self._bodies[_place(obj)] = new
            self.done.append(edit)


def _place(obj: KubeObject) -> _Place:
    return obj.file, obj.document, obj.prefix


def _local(edit: Edit, depth: int) -> Edit:
    return replace(edit, route=edit.route[depth:])
