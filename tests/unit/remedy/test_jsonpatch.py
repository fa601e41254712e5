"""JSON patches of objects inside Lists and wrappers, their tests and their pointers."""

from __future__ import annotations

import json

import yaml

from stallscope.remedy.jsonpatch import added_documents, object_patches
from stallscope.remedy.kustomize import component

BEFORE = """\
kind: List
apiVersion: v1
items:
  - apiVersion: v1
    kind: A
    metadata: {name: a}
    spec: {x/y~z: 1}
  - apiVersion: g/v1
    kind: B
    metadata: {name: b, namespace: n}
    spec:
      items: [{name: one, l: [1]}, {name: two}]
"""
AFTER = BEFORE.replace("x/y~z: 1", "x/y~z: 2").replace("l: [1]", "l: [1, 2]").replace("{name: two}", "{name: two, k: v}")


def test_each_item_of_a_list_is_an_object_of_its_own() -> None:
    a, b = object_patches("f", list(yaml.safe_load_all(BEFORE)), list(yaml.safe_load_all(AFTER)))
    assert (a.kind, a.name, a.namespace, a.group, a.version) == ("A", "a", "", "", "v1")
    assert list(a.operations) == [
        {"op": "test", "path": "/kind", "value": "A"},
        {"op": "test", "path": "/metadata/name", "value": "a"},
        {"op": "test", "path": "/spec/x~1y~0z", "value": 1},
        {"op": "replace", "path": "/spec/x~1y~0z", "value": 2},
    ]
    assert (b.group, b.namespace) == ("g", "n")
    assert list(b.operations) == [
        {"op": "test", "path": "/kind", "value": "B"},
        {"op": "test", "path": "/metadata/name", "value": "b"},
        {"op": "test", "path": "/spec/items/0/name", "value": "one"},
        {"op": "test", "path": "/spec/items/0/l", "value": [1]},
        {"op": "test", "path": "/spec/items/1/name", "value": "two"},
        {"op": "add", "path": "/spec/items/0/l/-", "value": 2},
        {"op": "add", "path": "/spec/items/1/k", "value": "v"},
    ]


def test_a_wrapper_is_patched_as_the_object_that_is_applied() -> None:
    before = {
        "apiVersion": "w/v1",
        "kind": "AppWrapper",
        "metadata": {"name": "w"},
        "spec": {"components": [{"template": {}}]},
    }
    after = json.loads(json.dumps(before))
    after["spec"]["components"][0]["template"]["x"] = 1
    [patch] = object_patches("f", [before], [after])
    assert patch.kind == "AppWrapper"
    assert patch.operations[-1] == {"op": "add", "path": "/spec/components/0/template/x", "value": 1}


def test_added_documents_are_created_not_patched() -> None:
    assert added_documents([{"a": 1}, None], [{"a": 1}, None, {"kind": "X"}]) == ({"kind": "X"},)
    files = component([], [{"kind": "X", "metadata": {"name": "n"}}])
    assert yaml.safe_load(files["kustomization.yaml"])["resources"] == ["x-n.yaml"]
    assert yaml.safe_load(files["x-n.yaml"]) == {"kind": "X", "metadata": {"name": "n"}}
