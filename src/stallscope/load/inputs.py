"""Everything that `analyse` needs, from paths or from texts in memory."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from stallscope.errors import LoadError, NothingToCheck
from stallscope.judge.inputs import ClusterFacts, Inputs, Problem, ProblemKind
from stallscope.load.discover import STDIN, Found, Source, discover
from stallscope.load.files import read_source
from stallscope.load.kinds.expand import expand
from stallscope.load.kustomize import patch_files
from stallscope.load.limits import Limits
from stallscope.load.objects import duplicates, objects_from, superseded_out
from stallscope.load.stream import Document, parse_stream
from stallscope.load.topology import namespaces_of, topology_from
from stallscope.model.kube import DEFAULT_NAMESPACE, KubeObject
from stallscope.model.source import Location
from stallscope.model.topology import Topology

_LOOKS = ("apiVersion", "kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """
    What to read. `paths` are files, directories and ``-``; `nodes_files` hold the cluster's nodes when the paths do not.
    `stdin_text` is standard input when the caller has read it; `stdin_name` is what the report calls it. `namespace` is
    for objects that name none; `facts` are what the user said about the cluster.
    """

    paths: tuple[str, ...] = ()
    nodes_files: tuple[str, ...] = ()
    stdin_text: str | None = None
    stdin_name: str = "<stdin>"
    namespace: str = DEFAULT_NAMESPACE
    facts: ClusterFacts = field(default_factory=ClusterFacts)
    limits: Limits = field(default_factory=Limits)
    allow_empty: bool = False


class Loaded(NamedTuple):
    """The inputs and the texts they came from, by the file names in their locations."""

    inputs: Inputs
    texts: Mapping[str, str]


def load_inputs(request: LoadRequest) -> Inputs:
    """`load` without the texts."""
    return load(request).inputs


def load(request: LoadRequest) -> Loaded:
    """
    Read everything the request names. What is wrong inside a file is a problem of the inputs; a path that cannot be read
    raises LoadError, and paths without a single file raise NothingToCheck unless `allow_empty`.
    """
    found = discover(request.paths)
    if not found.sources and not request.allow_empty:
        where = ", ".join(found.empty) or "nothing"
        raise NothingToCheck(
            f"no YAML or JSON files in {where}", hint="name the manifests, or pipe them: … | stallscope check -"
        )
    texts: dict[str, str] = {}
    problems = [] if request.allow_empty else [_empty(directory) for directory in found.empty]
    problems += [_unlisted(directory, why) for directory, why in found.unlisted]
    for name, text in _read_all(found, request):
        if isinstance(text, Problem):
            problems.append(text)
        else:
            texts[name] = text
    named = frozenset(_shown(s, request) for s in found.sources if s.named)
    return Loaded(inputs=_assemble(texts, named, request, problems, len(found.sources)), texts=texts)


def load_text(files: Mapping[str, str], request: LoadRequest | None = None, *, topology: Topology | None = None) -> Inputs:
    """
    The same from texts in memory, by file name (`fix` judges patched texts this way). The nodes are those of `topology`,
    else of the request's node files, else of the texts.
    """
    request = request or LoadRequest()
    named = frozenset(request.stdin_name if p == STDIN else p for p in request.paths) or frozenset(files)
    return _assemble(files, named, request, [], len(files), topology)


def _read_all(found: Found, request: LoadRequest) -> Iterable[tuple[str, str | Problem]]:
    for source in found.sources:
        if source.is_stdin and request.stdin_text is not None:
            yield request.stdin_name, request.stdin_text
        else:
            text = read_source(source, request.limits)
            if isinstance(text, Problem) and source.is_stdin:
                text = replace(text, location=replace(text.location, file=request.stdin_name))
            yield _shown(source, request), text


def _shown(source: Source, request: LoadRequest) -> str:
    return request.stdin_name if source.is_stdin else source.name


def _empty(directory: str) -> Problem:
    return Problem(
        kind=ProblemKind.UNREADABLE,
        message="no YAML or JSON files in this directory",
        location=Location(file=directory),
        hint="check the path; ignored and hidden files are not read unless named",
    )


def _unlisted(directory: str, why: str) -> Problem:
    return Problem(
        kind=ProblemKind.UNREADABLE,
        message=f"this directory cannot be listed: {why}",
        location=Location(file=directory),
        hint="check its permissions, or ignore it with .gitignore",
    )


def _assemble(
    texts: Mapping[str, str],
    named: frozenset[str],
    request: LoadRequest,
    problems: list[Problem],
    files: int,
    topology: Topology | None = None,
) -> Inputs:
    documents, found = _documents(texts, named, request.limits)
    objects, wrong = objects_from(documents, namespace=request.namespace)
    objects = superseded_out(objects)
    jobs, unusable = expand(objects, parse=_parse_block)
    topology = topology or _topology_of_files(request) or topology_from(objects)
    namespaces = {**(topology.namespaces if topology else {}), **namespaces_of(objects)}
    if topology is not None and namespaces:
        topology = replace(topology, namespaces=namespaces)
    order = {name: i for i, name in enumerate(texts)}
    told = [*found, *wrong, *duplicates(objects), *unusable]
    told.sort(key=lambda p: (order.get(p.location.file, 0), p.location.span.start))
    return Inputs(
        objects=objects,
        jobs=jobs,
        topology=topology,
        facts=_with_namespaces(request.facts, namespaces),
        problems=(*problems, *told),
        files=files,
        names=tuple(texts),
    )


def _documents(texts: Mapping[str, str], named: frozenset[str], limits: Limits) -> tuple[list[Document], list[Problem]]:
    """
    The documents of all texts but kustomize's patches. Of files that the user did not name, those that do not look like
    manifests at all may be as broken as they like.
    """
    documents: list[Document] = []
    problems: list[Problem] = []
    for name, text in texts.items():
        read, wrong = parse_stream(text, file=name, limits=limits)
        documents += read
        if name in named or all(word in text for word in _LOOKS):
            problems += wrong
    patches = patch_files(documents) if documents else frozenset()
    if not patches:
        return documents, problems
    hidden = {name for name in texts if name not in named and posixpath.normpath(name) in patches}
    return [d for d in documents if d.file not in hidden], [p for p in problems if p.location.file not in hidden]


def _topology_of_files(request: LoadRequest) -> Topology | None:
    """The topology in the node files, if any are named. Raises LoadError when one cannot be read or none holds a node."""
    if not request.nodes_files:
        return None
    objects: list[KubeObject] = []
    for source in discover(request.nodes_files).sources:
        name = _shown(source, request)
        stdin = request.stdin_text if source.is_stdin else None
        text = stdin if stdin is not None else read_source(source, request.limits)
        if isinstance(text, Problem):
            raise LoadError(f"{name}: {text.message}", hint=text.hint)
        documents, problems = parse_stream(text, file=name, limits=request.limits)
        broken = [p for p in problems if p.kind in (ProblemKind.UNREADABLE, ProblemKind.UNRENDERED)]
        if broken and source.named:
            raise LoadError(f"{broken[0].location}: {broken[0].message}", hint=broken[0].hint)
        objects += objects_from(documents, namespace=request.namespace)[0]
    topology = topology_from(objects)
    if topology is None:
        hint = "give the output of `kubectl get nodes -o yaml`, or a kind config"
        raise LoadError(f"{', '.join(request.nodes_files)}: no nodes in it", hint=hint)
    return topology


def _with_namespaces(facts: ClusterFacts, namespaces: Mapping[str, Mapping[str, str]]) -> ClusterFacts:
    """The facts with the labels of the namespaces that were read; what the user said counts more."""
    said = {name for name, _ in facts.namespace_labels}
    read = tuple((name, tuple(labels.items())) for name, labels in namespaces.items() if name not in said)
    return replace(facts, namespace_labels=(*facts.namespace_labels, *read)) if read else facts


def _parse_block(text: str) -> Sequence[Any]:
    """The bodies in a text block that holds manifests (Argo ``resource`` steps)."""
    documents, _ = parse_stream(text)
    return [d.value for d in documents if d.value is not None]
