"""Documents to objects: identity, namespaces, lists, origins, and what is wrong with an identity."""

from __future__ import annotations

import pytest

from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.load.objects import duplicates, objects_from, superseded_out
from stallscope.load.stream import parse_stream
from stallscope.model.kube import KubeObject


def objects_of(text: str, namespace: str = "default") -> tuple[tuple[KubeObject, ...], tuple[Problem, ...]]:
    documents, problems = parse_stream(text, file="f.yaml")
    assert problems == ()
    return objects_from(documents, namespace=namespace)


def test_identity() -> None:
    text = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: train, namespace: ml, labels: {a: b}}\n"
    (item,), problems = objects_of(text)
    assert problems == ()
    assert (item.group, item.kind, item.namespace, item.name) == ("kubeflow.org", "PyTorchJob", "ml", "train")
    assert item.ref == "PyTorchJob ml/train"
    assert str(item.at("metadata", "name")) == "f.yaml:3:12"
    assert item.labels == {"a": "b"}


def test_the_namespace_of_objects_that_name_none() -> None:
    text = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\n"
    assert objects_of(text)[0][0].namespace == "default"
    assert objects_of(text, "team")[0][0].namespace == "team"


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "Node"),
        ("v1", "Namespace"),
        ("cilium.io/v2", "CiliumClusterwideNetworkPolicy"),
        ("policy.networking.k8s.io/v1alpha1", "AdminNetworkPolicy"),
        ("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime"),
        ("kueue.x-k8s.io/v1beta1", "ClusterQueue"),
        ("crd.projectcalico.org/v1", "GlobalNetworkPolicy"),
    ],
)
def test_cluster_scoped_kinds_have_no_namespace(version: str, kind: str) -> None:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x, namespace: wrong}}\n"
    (item,), _ = objects_of(text, "team")
    assert item.namespace == ""
    assert item.ref == f"{kind} x"


def test_a_kind_of_the_same_name_in_another_group_is_namespaced() -> None:
    (item,), _ = objects_of("apiVersion: example.com/v1\nkind: Node\nmetadata: {name: x}\n")
    assert item.namespace == "default"


LIST = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: a}
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: batch/v1, kind: Job, metadata: {name: b, namespace: ns}}
"""


def test_lists_are_unwrapped_and_keep_their_route() -> None:
    items, problems = objects_of(LIST)
    assert problems == ()
    assert [(o.kind, o.name, o.prefix) for o in items] == [
        ("Service", "a", ("items", 0)),
        ("Job", "b", ("items", 1, "items", 0)),
    ]
    assert items[1].at("metadata", "name").route == ("items", 1, "items", 0, "metadata", "name")
    assert str(items[1].at("metadata", "name")) == "f.yaml:10:50"


def test_typed_lists_imply_what_their_items_leave_out() -> None:
    items, problems = objects_of("apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: p}\n- metadata: {name: q}\n")
    assert problems == ()
    assert [(o.api_version, o.kind, o.name) for o in items] == [("v1", "Pod", "p"), ("v1", "Pod", "q")]


def test_an_empty_list_holds_nothing() -> None:
    for items in ("[]", "", "null"):
        assert objects_of(f"apiVersion: v1\nkind: List\nitems: {items}\n") == ((), ())


@pytest.mark.parametrize(
    "text",
    [
        "replicas: 3\nimage: {repository: x}\n",  # values.yaml
        "on: {push: {}}\njobs: {build: {steps: []}}\n",  # a workflow
        "resources: [a.yaml]\n",  # kustomization.yaml
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n",
        "apiVersion: v2\nname: chart\nversion: 1.0.0\n",  # Chart.yaml
        "apiVersion: v1\nkind: Config\nclusters: []\n",  # a kubeconfig
        "kind: InitConfiguration\napiVersion: kubeadm.k8s.io/v1beta4\n",
        "- a\n- b\n",
        "just text\n",
        "",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations: {config.kubernetes.io/local-config: 'true'}\n",
    ],
)
def test_what_is_no_object_goes_without_a_word(text: str) -> None:
    assert objects_of(text) == ((), ())


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("kind: Job\nmetadata: {name: x}\n", "f.yaml:1:1", "kind: Job without apiVersion"),
        ("apiVersion: v1\nmetadata: {name: x}\n", "f.yaml:1:1", "apiVersion: v1 without kind"),
        ("apiVersion: v1\nkind: [Job]\n", "f.yaml:2:1", "kind must be text, found a list"),
        ("apiVersion: 1\nkind: Job\n", "f.yaml:1:1", "apiVersion must be text, found the number 1"),
        ("apiVersion: v1\nkind: yes\n", "f.yaml:2:1", "kind must be text, found true"),
        ("apiVersion: v1\nkind: Pod\nmetadata: [x]\n", "f.yaml:3:1", "Pod: metadata must be a mapping, found a list"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\n",
            "f.yaml:3:12",
            "metadata.name must be text, found the number 5",
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: {namespace: {}}\n", "f.yaml:3:12", "namespace must be text, found a mapping"),
        ("apiVersion: v1\nkind: List\nitems: {a: 1}\n", "f.yaml:3:1", "items of a List must be a list, found a mapping"),
        ("apiVersion: v1\nkind: List\nitems: [1]\n", "f.yaml:3:9", "item 0 of a List must be an object, found the number 1"),
        ("apiVersion: v1\nkind: List\nitems: [{a: 1}]\n", "f.yaml:3:9", "an item of a List has no kind"),
    ],
)
def test_a_wrong_identity_is_one_clear_problem(text: str, where: str, message: str) -> None:
    items, (problem,) = objects_of(text)
    assert items == ()
    assert problem.kind is ProblemKind.INVALID
    assert str(problem.location) == where
    assert message in problem.message


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_label_values_must_be_text_but_the_object_stays(field: str) -> None:
    text = f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n  {field}:\n    a: b\n    c: true\n    d: 1\n"
    (item,), (problem,) = objects_of(text)
    assert item.name == "x"
    assert str(problem.location) == "f.yaml:7:5"
    assert f"metadata.{field}.c must be text, found true" in problem.message
    assert "quotes" in problem.hint


def test_thousands_of_bad_items_are_not_thousands_of_problems() -> None:
    _, problems = objects_of("apiVersion: v1\nkind: List\nitems: [" + "1," * 5000 + "]\n")
    assert len(problems) == 50


def test_lists_nested_without_end() -> None:
    text = "{apiVersion: v1, kind: List, items: [" * 20 + "]}" * 20
    _, problems = objects_of(text)
    assert [p.message for p in problems] == ["Lists nested too deep"]


def test_origins() -> None:
    text = (
        "# Source: c/templates/a.yaml\napiVersion: v1\nkind: List\n"
        "items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]\n"
        "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: b\n  annotations:\n"
        "    config.kubernetes.io/origin: |\n      path: base/b.yaml\n"
    )
    (a, b), _ = objects_of(text)
    assert a.rendered_from == a.at("metadata").rendered_from == "c/templates/a.yaml"
    assert b.rendered_from == "base/b.yaml"


def test_generated_names() -> None:
    (item,), _ = objects_of("apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: run-}\n")
    assert item.name == "run-"


def test_duplicates_name_both_places() -> None:
    text = "".join(
        f"---\napiVersion: {version}\nkind: Job\nmetadata:\n  name: {name}\n  namespace: {namespace}\n"
        for version, name, namespace in (
            ("batch/v1", "a", "ns"),
            ("batch/v1", "a", "other"),
            ("batch/v1", "b", "ns"),
            ("batch/v1beta1", "a", "ns"),
            ("example.com/v1", "a", "ns"),
        )
    )
    items, _ = objects_of(text)
    (problem,) = duplicates(items)
    assert problem.kind is ProblemKind.DUPLICATE_OBJECT
    assert str(problem.location) == "f.yaml:23:9"
    assert "Job ns/a is defined twice, first at f.yaml:5:9" in problem.message


def test_generated_names_are_no_duplicates() -> None:
    text = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {generateName: run-}\n" * 2
    assert duplicates(objects_of(text)[0]) == ()


def test_a_manifest_replaces_the_object_of_the_snapshot() -> None:
    pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, uid: %s, labels: {from: %s}}\n"
    text = pod % ("a", "5f1", "cluster") + pod % ("a", "''", "file") + pod % ("b", "5f2", "cluster")
    items, problems = objects_of(text)
    assert problems == ()
    kept = superseded_out(items)
    assert [(o.name, o.labels["from"]) for o in kept] == [("a", "file"), ("b", "cluster")]
    assert duplicates(kept) == ()
