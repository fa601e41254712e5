"""
The mTLS mode in force at a workload's port: PeerAuthentication of the workload (port level first), its namespace, the mesh.

Source: istio.io PeerAuthentication reference: the narrowest applies, UNSET inherits, the default is PERMISSIVE; a policy
without selector in the root namespace is mesh-wide. Several of one level: the oldest wins; without creation times that is
not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stallscope.model.kube import KubeObject
from stallscope.model.source import as_map, as_str, as_str_map

PERMISSIVE, STRICT, DISABLE, UNCLEAR = "PERMISSIVE", "STRICT", "DISABLE", "UNCLEAR"
ROOT = "istio-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class MtlsMode:
    """`mode` is PERMISSIVE, STRICT, DISABLE, or UNCLEAR; `source` the object that set it, None for the default."""

    mode: str
    source: KubeObject | None = None


def mtls_mode(
    objects: Iterable[KubeObject], namespace: str, labels: Mapping[str, str], port: int, root: str = ROOT
) -> MtlsMode:
    """The mode at one port of one workload."""
    found = [o for o in objects if o.kind == "PeerAuthentication" and o.group == "security.istio.io"]
    own = [o for o in found if o.namespace == namespace and _selects(o, labels)]
    for level in (
        [(o, as_str(as_map(as_map(o.get("spec", "portLevelMtls")).get(str(port))).get("mode"))) for o in own],
        [(o, _mode(o)) for o in own],
        [(o, _mode(o)) for o in found if o.namespace == namespace and _whole(o)],
        [(o, _mode(o)) for o in found if o.namespace == root and _whole(o)],
    ):
        stated = [(o, m) for o, m in level if m and m != "UNSET"]
        if stated:
            return _first(stated)
    return MtlsMode(mode=PERMISSIVE)


def _mode(policy: KubeObject) -> str:
    return as_str(policy.get("spec", "mtls", "mode"))


def _whole(policy: KubeObject) -> bool:
    return not as_map(policy.get("spec", "selector", "matchLabels"))


def _selects(policy: KubeObject, labels: Mapping[str, str]) -> bool:
    wanted = as_str_map(policy.get("spec", "selector", "matchLabels"))
    return bool(wanted) and wanted.items() <= labels.items()


def _first(stated: Sequence[tuple[KubeObject, str]]) -> MtlsMode:
    modes = {m for _, m in stated}
    if len(modes) == 1:
        return MtlsMode(mode=stated[0][1], source=stated[0][0])
    dated = [(as_str(o.get("metadata", "creationTimestamp")), o, m) for o, m in stated]
    if all(d for d, _, _ in dated):
        _, chosen, mode = min(dated, key=lambda d: (d[0], d[1].name))
        return MtlsMode(mode=mode, source=chosen)
    return MtlsMode(mode=UNCLEAR, source=stated[0][0])
