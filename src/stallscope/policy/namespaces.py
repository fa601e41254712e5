"""Namespace labels: from the user's facts and from Namespace objects. The name label is always known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stallscope.model.kube import KubeObject
from stallscope.policy.peers import NAME_LABEL


class Namespaces:
    """Labels of each namespace; `of` also says whether they are known beyond the name the API server sets."""

    __slots__ = ("_labels",)

    def __init__(self, stated: Mapping[str, Mapping[str, str]], objects: Iterable[KubeObject] = ()) -> None:
        self._labels: dict[str, dict[str, str]] = {}
        for item in objects:
            if item.kind == "Namespace" and item.api_version == "v1" and item.name:
                self._labels[item.name] = {NAME_LABEL: item.name, **item.labels}
        for name, labels in stated.items():
            self._labels[name] = {NAME_LABEL: name, **labels}

    def of(self, name: str) -> tuple[Mapping[str, str], bool]:
        found = self._labels.get(name)
        return ({NAME_LABEL: name}, False) if found is None else (found, True)
