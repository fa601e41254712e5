"""A Kubernetes object as it was read: identity, body, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stallscope.model.source import Location, Route, as_str, as_str_map, dig, span_of

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeObject:
    """
    One object. `prefix` is the route from the document's root to it (non-empty inside ``kind: List`` or a wrapper), so
    that routes used by the rest of the program are relative to the object itself.

    `namespace` is the effective one (``default`` or the user's -n when the manifest names none); the empty string for
    cluster-scoped kinds. Equality is by identity of the object's place, cheap enough to use as a key.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = DEFAULT_NAMESPACE
    body: Mapping[str, Any] = field(compare=False, default_factory=dict)
    file: str = ""
    document: int = 0
    prefix: Route = ()
    rendered_from: str = field(compare=False, default="")

    @property
    def group(self) -> str:
        """API group; the empty string is the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def ref(self) -> str:
        """How people name it: ``Kind namespace/name``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        return as_str_map(dig(self.body, "metadata", "labels"))

    @property
    def annotations(self) -> Mapping[str, str]:
        return as_str_map(dig(self.body, "metadata", "annotations"))

    def get(self, *route: str | int, default: Any = None) -> Any:
        """Value at a route of the body, see `dig`."""
        return dig(self.body, *route, default=default)

    def at(self, *route: str | int, key: bool = True) -> Location:
        """The location of a route in this object, or of the nearest enclosing value."""
        span = span_of(self.body, route, key=key)
        return Location(file=self.file, span=span, route=self.prefix + route, rendered_from=self.rendered_from)


def from_body(
    body: Mapping[str, Any],
    *,
    namespace: str = DEFAULT_NAMESPACE,
    file: str = "",
    document: int = 0,
    prefix: Route = (),
) -> KubeObject:
    """Wrap a plain body (tests, vectors, snapshots). Missing or ill-typed identity fields become empty text."""
    return KubeObject(
        api_version=as_str(body.get("apiVersion")),
        kind=as_str(body.get("kind")),
        name=as_str(dig(body, "metadata", "name")) or as_str(dig(body, "metadata", "generateName")),
        namespace=as_str(dig(body, "metadata", "namespace")) or namespace,
        body=body,
        file=file,
        document=document,
        prefix=prefix,
    )
