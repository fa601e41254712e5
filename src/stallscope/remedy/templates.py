"""
Changes to a role's pod template, written where they belong: into the template, or into the overlay of the user's own
object when the template is built in or shared (a TrainJob's ``runtimePatches``).

Lists in an overlay replace the template's (strategic merge without merge key: tolerations, affinity terms; Kubeflow
Trainer trainjob_types.go PodSpecPatch, core/v1), so there the whole effective list is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stallscope.errors import PatchRefused
from stallscope.model.kube import KubeObject
from stallscope.model.source import Route, as_list, dig
from stallscope.model.workload import Overlay, Role
from stallscope.remedy.workbench import Bench


def spec_set(bench: Bench, role: Role, route: Route, value: Any) -> None:
    """Set a key below the pod spec (``("nodeSelector", zone)``). Raises PatchRefused."""
    obj, base = _place(bench, role, route)
    bench.set(obj, (*base, *route), value, first=_lead(route))


def spec_append(bench: Bench, role: Role, route: Route, item: Any) -> None:
    """Append to a list below the pod spec (``("tolerations",)``). Raises PatchRefused."""
    obj, base = _place(bench, role, route)
    if role.template.overlay is not None:
        _copy_list(bench, role, obj, base, route)
    bench.append(obj, (*base, *route), item, first=_lead(route))


#: Fields that decide where pods land: a reader of the patch wants them at the top of the pod spec.
_LEADING = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")


def _lead(route: Route) -> str:
    return str(route[0]) if route[0] in _LEADING else ""


def _copy_list(bench: Bench, role: Role, obj: KubeObject, base: Route, route: Route) -> None:
    """Write the outermost list on the route as it is in force, unless the overlay has its own already."""
    outer = next((route[:i] for i, step in enumerate(route) if isinstance(step, int)), route)
    known = as_list(dig(role.template.spec, *outer))
    if known and bench.get(obj, *base, *outer) is None:
        bench.set(obj, (*base, *outer), [plain(item) for item in known], first=_lead(route))


def plain(value: Any) -> Any:
    """A copy made of ordinary mappings and lists."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def spec_replace(bench: Bench, role: Role, route: Route, value: Any) -> None:
    """Replace a scalar below the pod spec, wherever it was written. Raises PatchRefused."""
    template = role.template
    if str(route[0]) in template.spec_sources:
        obj, base = template.spec_sources[str(route[0])]
        bench.replace(obj, (*base, *route[1:]), value)
        return
    _check_patchable(role)
    bench.replace(template.source, (*template.route, "spec", *route), value)


def metadata_set(bench: Bench, role: Role, section: str, values: Mapping[str, str]) -> None:
    """Set labels or annotations of the pod template. Raises PatchRefused."""
    overlay = role.template.overlay
    if overlay is None:
        _check_patchable(role)
        obj, base = role.template.source, (*role.template.route, "metadata")
    else:
        obj, spec = open_overlay(bench, overlay)
        if spec[-1] != "spec":
            raise PatchRefused("podSpecOverrides cannot carry labels or annotations; runtimePatches (Trainer v2.2) can")
        base = (*spec[:-1], "metadata")
    for key, value in values.items():
        bench.set(obj, (*base, section, key), value, first="metadata")


def _place(bench: Bench, role: Role, route: Route) -> tuple[KubeObject, Route]:
    """The object and the route of the pod spec to write to; list items on an overlay's way are made."""
    overlay = role.template.overlay
    if overlay is None:
        _check_patchable(role)
        return role.template.source, (*role.template.route, "spec")
    if route[0] not in overlay.keys:
        holder = overlay.source.ref
        raise PatchRefused(f"{route[0]} cannot be patched from {holder}; the training runtime has to be changed")
    return open_overlay(bench, overlay)


def open_overlay(bench: Bench, overlay: Overlay) -> tuple[KubeObject, Route]:
    """Make the items the overlay's route leads through; several roles may need the same ones, at other indices."""
    actual: Route = ()
    for depth, step in enumerate(overlay.route, start=1):
        entries = overlay.identities.get(overlay.route[:depth])
        index = step if entries is None else bench.append(overlay.source, actual, dict(entries), by=tuple(entries))
        actual = (*actual, index)
    return overlay.source, actual


def _existing(bench: Bench, overlay: Overlay) -> Route | None:
    """The overlay's route as it stands now; None while an item on the way does not exist."""
    actual: Route = ()
    for depth, step in enumerate(overlay.route, start=1):
        entries = overlay.identities.get(overlay.route[:depth])
        items = as_list(bench.get(overlay.source, *actual)) if entries is not None else ()
        index = step if entries is None else next((i for i, item in enumerate(items) if _carries(item, entries)), None)
        if index is None:
            return None
        actual = (*actual, index)
    return actual


def _carries(item: Any, entries: Mapping[str, Any]) -> bool:
    return isinstance(item, Mapping) and all(item.get(k) == v for k, v in entries.items())


def _check_patchable(role: Role) -> None:
    if not role.template.patchable:
        raise PatchRefused(role.template.why_not or f"the template of {role.name} is in none of the files")
