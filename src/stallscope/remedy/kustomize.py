"""
The same change as a kustomize Component: JSON patches by target, and the new objects as resources. A Component, because
it holds no manifest of its own: add it to the ``components`` of the kustomization that does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from stallscope.remedy import emit
from stallscope.remedy.jsonpatch import ObjectPatch


def component(patches: Sequence[ObjectPatch], added: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """File name -> text: ``kustomization.yaml`` and one file for each new object."""
    files = {_file_name(body, index): emit.document(body, emit.Style()) for index, body in enumerate(added)}
    head = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
    lines = emit.mapping_lines({**head, **({"resources": sorted(files)} if files else {})}, 0, emit.Style())
    if patches:
        lines.append("patches:")
        for patch in patches:
            lines += _patch_lines(patch)
    return {"kustomization.yaml": "\n".join([*lines, ""]), **files}


def _patch_lines(patch: ObjectPatch) -> list[str]:
    target = {
        "group": patch.group,
        "version": patch.version,
        "kind": patch.kind,
        "name": patch.name,
        "namespace": patch.namespace,
    }
    known = {key: value for key, value in target.items() if value}
    operations = [f"    - {json.dumps(op, ensure_ascii=False)}" for op in patch.operations]
    return [*emit.item_lines({"target": known}, 0, emit.Style()), "  patch: |-", *operations]


def _file_name(body: Mapping[str, Any], index: int) -> str:
    """``ciliumnetworkpolicy-llm-ranks.yaml``; names of objects are safe in file names (RFC 1123)."""
    kind, name = str(body.get("kind", "object")).lower(), str(body.get("metadata", {}).get("name", index))
    return f"{kind}-{name}.yaml"
