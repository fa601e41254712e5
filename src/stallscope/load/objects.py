"""Documents to Kubernetes objects: lists unwrapped, identities checked, origins named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from posixpath import dirname
from typing import Any

from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.load.scopes import is_cluster_scoped
from stallscope.load.stream import Document, parse_stream
from stallscope.load.templates import kustomize_origin
from stallscope.model.kube import DEFAULT_NAMESPACE, KubeObject
from stallscope.model.source import Location, Route, as_map, as_str, as_str_map, dig, span_of

#: Files of tools that look like objects but are never sent to a cluster.
_TOOL_GROUPS = frozenset({"kustomize.config.k8s.io", "kubeadm.k8s.io", "kubelet.config.k8s.io", "kubeproxy.config.k8s.io"})
_LOCAL = "config.kubernetes.io/local-config"
_DEPTH = 8  # a List in a List in a List …
Identity = tuple[str, str, str, str]  # group, kind, namespace, name
_SAID = 50  # problems told of one document or of one sort; a broken dump has thousands of the same


def objects_from(
    documents: Iterable[Document], *, namespace: str = DEFAULT_NAMESPACE
) -> tuple[tuple[KubeObject, ...], tuple[Problem, ...]]:
    """
    The objects of `documents`, in order; `namespace` is for those that name none. Documents that are no Kubernetes
    objects (values.yaml, workflows, kustomization.yaml) are left out without a word; objects whose identity has the wrong
    type are left out with a problem. Never raises.
    """
    collector = _Collector(namespace)
    for document in documents:
        collector.document(document)
    return tuple(collector.objects), tuple(collector.problems)


def superseded_out(objects: tuple[KubeObject, ...]) -> tuple[KubeObject, ...]:
    """
    `objects` without those of a cluster (they carry a uid) that a manifest among them would replace: manifests given
    together with a snapshot are judged as if they were applied to it.
    """
    live = [bool(o.get("metadata", "uid")) for o in objects]
    if not any(live):
        return objects
    manifests = {_identity(o) for o, held in zip(objects, live, strict=True) if not held}
    return tuple(o for o, held in zip(objects, live, strict=True) if not held or _identity(o) not in manifests)


def duplicates(objects: Iterable[KubeObject]) -> tuple[Problem, ...]:
    """
    One problem for each object whose kind, namespace and name an earlier one has: applied together, the last wins. No more
    than a screen of them. In two directories it is a minor one: overlays and examples repeat names and are applied apart.
    """
    seen: dict[Identity, KubeObject] = {}
    problems: list[Problem] = []
    for item in objects:
        if len(problems) == _SAID:
            break
        if not item.get("metadata", "name") or "{{" in item.name:  # generateName, templates: another name each time
            continue
        first = seen.setdefault(_identity(item), item)
        if first is not item:
            problems.append(_duplicate(item, first))
    return tuple(problems)


def _duplicate(item: KubeObject, first: KubeObject) -> Problem:
    apart = dirname(item.file) != dirname(first.file)
    return Problem(
        kind=ProblemKind.DUPLICATE_OBJECT,
        message=f"{item.ref} is defined twice, first at {_name_of(first)}; applying both leaves the last one",
        location=_name_of(item),
        hint="check the directories apart if they are applied apart" if apart else "rename or remove one of them",
        subject=item.ref,
        minor=apart,
    )


def _identity(item: KubeObject) -> Identity:
    return item.group, item.kind, item.namespace, item.name


class _Collector:
    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.objects: list[KubeObject] = []
        self.problems: list[Problem] = []
        self._told: dict[tuple[str, int], int] = {}

    def document(self, document: Document) -> None:
        if isinstance(document.value, Mapping):
            self._body(document, document.value, (), "", "")

    def _body(self, document: Document, body: Mapping[str, Any], prefix: Route, kind: str, version: str) -> None:
        """One object, or a list of them. `kind` and `version` are what a typed list implies for items that say nothing."""
        api_version, own_kind = body.get("apiVersion", version or None), body.get("kind", kind or None)
        if not self._claims(document, body, prefix, api_version, own_kind):
            return
        items = body.get("items")
        if own_kind.endswith("List") and "items" in body:
            self._list(document, body, items, prefix, own_kind, api_version)
            return
        group = api_version.rpartition("/")[0]
        if group in _TOOL_GROUPS or (own_kind == "Config" and not group):
            return
        metadata = body.get("metadata")
        if not self._metadata_fits(document, body, prefix, own_kind, metadata):
            return
        named = as_map(metadata)
        annotations = as_str_map(named.get("annotations"))
        if annotations.get(_LOCAL) == "true":
            return
        scoped = is_cluster_scoped(group, own_kind)
        self.objects.append(
            KubeObject(
                api_version=api_version,
                kind=own_kind,
                name=as_str(named.get("name")) or as_str(named.get("generateName")),
                namespace="" if scoped else as_str(named.get("namespace")) or self.namespace,
                body=body,
                file=document.file,
                document=document.index,
                prefix=prefix,
                rendered_from=document.rendered_from or kustomize_origin(annotations, _first_value),
            )
        )

    def _claims(self, document: Document, body: Mapping[str, Any], prefix: Route, version: Any, kind: Any) -> bool:
        """Whether the body says what it is. One that says so only by half, or with the wrong types, is a problem."""
        if version is None and kind is None:
            if prefix:
                self._problem(document, body, (), prefix, "an item of a List has no kind", "give it apiVersion and kind")
            return False
        for field, value in (("apiVersion", version), ("kind", kind)):
            if value is None or value == "":
                if isinstance(body.get("metadata"), Mapping) or prefix:
                    what = f"kind: {kind}" if field == "apiVersion" else f"apiVersion: {version}"
                    self._problem(document, body, (), prefix, f"{_short(what)} without {field}", f"add {field}")
                return False
            if not isinstance(value, str):
                message = f"{field} must be text, found {_type(value)}"
                self._problem(document, body, (field,), prefix, message, "quote it if it is meant as text")
                return False
        return True

    def _list(self, document: Document, body: Mapping[str, Any], items: Any, prefix: Route, kind: str, version: str) -> None:
        if not isinstance(items, list):
            if items is not None:
                message = f"items of a {_short(kind)} must be a list, found {_type(items)}"
                self._problem(document, body, ("items",), prefix, message, "")
            return
        if len(prefix) >= 2 * _DEPTH:
            self._problem(document, body, (), prefix, "Lists nested too deep", "unwrap them")
            return
        # The API server's typed lists (PodList) leave apiVersion and kind out of their items.
        implied = (kind.removesuffix("List"), version) if kind != "List" else ("", "")
        for index, item in enumerate(items):
            if isinstance(item, Mapping):
                self._body(document, item, (*prefix, "items", index), *implied)
            else:
                message = f"item {index} of a {_short(kind)} must be an object, found {_type(item)}"
                self._problem(document, body, ("items", index), prefix, message, "remove it")

    def _metadata_fits(self, document: Document, body: Mapping[str, Any], prefix: Route, kind: str, metadata: Any) -> bool:
        if metadata is None:
            return True
        if not isinstance(metadata, Mapping):
            message = f"{_short(kind)}: metadata must be a mapping, found {_type(metadata)}"
            self._problem(document, body, ("metadata",), prefix, message, "indent its fields below metadata:")
            return False
        for field in ("name", "generateName", "namespace"):
            value = metadata.get(field)
            if value is not None and not isinstance(value, str):
                message = f"{_short(kind)}: metadata.{field} must be text, found {_type(value)}"
                self._problem(document, body, ("metadata", field), prefix, message, "put it in quotes")
                return False
        for field in ("labels", "annotations"):
            if not self._texts_fit(document, body, prefix, kind, field, metadata.get(field)):
                break
        return True

    def _texts_fit(
        self, document: Document, body: Mapping[str, Any], prefix: Route, kind: str, field: str, value: Any
    ) -> bool:
        """The API server takes only text as label and annotation values; an unquoted ``"true"`` is the usual slip."""
        if value is None:
            return True
        where: Route = ("metadata", field)
        if not isinstance(value, Mapping):
            message = f"{_short(kind)}: metadata.{field} must be a mapping, found {_type(value)}"
            self._problem(document, body, where, prefix, message, "")
            return False
        for key, text in value.items():
            if text is not None and not isinstance(text, str):
                message = f"{_short(kind)}: metadata.{field}.{_short(key)} must be text, found {_type(text)}"
                self._problem(document, body, (*where, key), prefix, message, "put the value in quotes")
                return False
        return True

    def _problem(
        self, document: Document, body: Mapping[str, Any], route: Route, prefix: Route, message: str, hint: str
    ) -> None:
        told = self._told[document.file, document.index] = self._told.get((document.file, document.index), 0) + 1
        if told > _SAID:
            return
        name = dig(body, "metadata", "name")
        location = Location(
            file=document.file,
            span=span_of(body, route) if route else _start_of(body, document),
            route=prefix + route,
            rendered_from=document.rendered_from,
        )
        subject = f"{_short(as_str(body.get('kind')))} {_short(name)}" if isinstance(name, str) else ""
        self.problems.append(
            Problem(kind=ProblemKind.INVALID, message=message, location=location, hint=hint, subject=subject)
        )


def _start_of(body: Mapping[str, Any], document: Document) -> Any:
    return span_of(body, ()) if hasattr(body, "span") else document.location.span


def _name_of(item: KubeObject) -> Location:
    return item.at("metadata", "name", key=False)


def _first_value(text: str) -> Any:
    documents, _ = parse_stream(text)
    return documents[0].value if documents else None


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _type(value: Any) -> str:
    """A YAML value's type in the words of a person."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {_short(value)!r}"
        case Mapping():
            return "a mapping"
        case _:
            return "a list"
