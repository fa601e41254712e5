"""Files that a kustomization uses as patches: they look like objects and are none."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stallscope.load.stream import Document
from stallscope.model.source import as_list, as_map, dig

NAMES = frozenset({"kustomization.yaml", "kustomization.yml"})

#: Lists of file names, or of mappings with a ``path`` (kustomize's kustomization reference).
_FIELDS = ("patches", "patchesStrategicMerge", "patchesJson6902", "replacements", "configurations", "transformers")


def patch_files(documents: Iterable[Document]) -> frozenset[str]:
    """The files, named as the kustomizations among `documents` are, that these apply as patches."""
    return frozenset(
        posixpath.normpath(posixpath.join(posixpath.dirname(d.file), name))
        for d in documents
        if posixpath.basename(d.file) in NAMES and isinstance(d.value, Mapping)
        for name in _named_in(d.value)
    )


def _named_in(kustomization: Mapping[str, Any]) -> Iterator[str]:
    for field in _FIELDS:
        for entry in as_list(kustomization.get(field)):
            name = entry if isinstance(entry, str) else dig(as_map(entry), "path")
            if isinstance(name, str) and "\n" not in name:
                yield name
