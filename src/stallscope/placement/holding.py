"""What bound pods hold of their nodes. A cluster has thousands of pods of few shapes, so each shape is worked out once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stallscope.model.source import as_list, as_map
from stallscope.placement.amounts import Asked, asked_by, host_ports


class Held(NamedTuple):
    """Resources and host ports."""

    asked: Asked
    ports: tuple[tuple[str, str, int], ...]


#: What pods were found to hold, by `_shape`.
Known = dict[str, Held]


def held_by(body: Mapping[str, Any], known: Known) -> Held:
    """What the bound pod `body` holds; `known` is carried from pod to pod."""
    spec, status = as_map(body.get("spec")), as_map(body.get("status"))
    shape = _shape(spec, status)
    if shape not in known:
        known[shape] = Held(asked_by(spec, status), host_ports(spec))
    return known[shape]


def _shape(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    """The text of everything `asked_by` and `host_ports` read: not names, times and images, which differ from pod to pod."""
    resizes = [
        c.get("reason") for c in map(as_map, as_list(status.get("conditions"))) if c.get("type") == "PodResizePending"
    ]
    return repr((
        spec.get("hostNetwork"), spec.get("overhead"), spec.get("resources"),
        _containers(spec.get("containers")), _containers(spec.get("initContainers")),
        resizes, status.get("resources"), status.get("allocatedResources"),
        _statuses(status.get("containerStatuses")), _statuses(status.get("initContainerStatuses")),
    ))  # fmt: skip


def _containers(listed: Any) -> list[tuple[Any, ...]]:
    return [
        (c.get("name"), c.get("resources"), c.get("ports"), c.get("restartPolicy")) for c in map(as_map, as_list(listed))
    ]


def _statuses(listed: Any) -> list[tuple[Any, ...]]:
    return [(s.get("name"), s.get("resources"), s.get("allocatedResources")) for s in map(as_map, as_list(listed))]
