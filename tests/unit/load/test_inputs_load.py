"""Paths to inputs, end to end over real files."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from stallscope.errors import LoadError, NothingToCheck
from stallscope.judge.inputs import ClusterFacts, ProblemKind
from stallscope.load.inputs import LoadRequest, load, load_inputs, load_text
from stallscope.load.limits import Limits

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: x}]}}}
    Worker: {replicas: 3, template: {spec: {containers: [{name: pytorch, image: x}]}}}
"""
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\n"
TSCONFIG = '{\n  // a comment: [\n  "a": 1,\n}\n'
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {topology.kubernetes.io/zone: a}}\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


def request(*paths: Path | str, **more: object) -> LoadRequest:
    return LoadRequest(paths=tuple(map(str, paths)), **more)  # type: ignore[arg-type]


def test_a_directory(tmp_path: Path) -> None:
    write(
        tmp_path, {"job.yaml": JOB, "nodes.yaml": NODE, "values.yaml": "a: 1\n", "Chart.yaml": "apiVersion: v2\nname: c\n"}
    )
    inputs = load_inputs(request(tmp_path))
    assert inputs.problems == ()
    assert inputs.files == 4
    assert [o.ref for o in inputs.objects] == ["PyTorchJob default/train", "Node n1"]
    assert [(j.ref, len(j.pods)) for j in inputs.jobs] == [("PyTorchJob default/train", 4)]
    assert inputs.topology is not None
    assert [n.name for n in inputs.topology.nodes] == ["n1"]


def test_texts_are_named_as_in_locations(tmp_path: Path) -> None:
    write(tmp_path, {"job.yaml": JOB})
    loaded = load(request(tmp_path / "job.yaml"))
    assert loaded.texts == {str(tmp_path / "job.yaml"): JOB}
    assert loaded.inputs.objects[0].file == str(tmp_path / "job.yaml")


def test_nodes_from_their_own_file(tmp_path: Path) -> None:
    dump = json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m"}}]}
    )
    write(tmp_path, {"a/job.yaml": JOB, "a/nodes.yaml": NODE, "nodes.json": dump})
    inputs = load_inputs(request(tmp_path / "a", nodes_files=(str(tmp_path / "nodes.json"),)))
    assert inputs.topology is not None
    assert [n.name for n in inputs.topology.nodes] == ["m"]
    assert len(inputs.objects) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [(POD % "x", "no nodes in it"), ("a: b: c\n", "mapping values"), ("", "no nodes in it"), ("\0", "NUL byte")],
)
def test_a_nodes_file_without_nodes(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, {"job.yaml": JOB, "nodes.yaml": text})
    with pytest.raises(LoadError) as caught:
        load_inputs(request(tmp_path / "job.yaml", nodes_files=(str(tmp_path / "nodes.yaml"),)))
    assert message in caught.value.message
    assert "nodes.yaml" in caught.value.message
    assert caught.value.hint


def test_namespaces_reach_the_facts_and_the_topology(tmp_path: Path) -> None:
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ml, labels: {team: %s}}\n"
    write(tmp_path, {"a/job.yaml": JOB, "a/ns.yaml": space % "mine", "nodes.yaml": NODE + "---\n" + space % "old"})
    facts = ClusterFacts(cni="cilium", namespace_labels=(("said", (("a", "b"),)),))
    inputs = load_inputs(request(tmp_path / "a", nodes_files=(str(tmp_path / "nodes.yaml"),), facts=facts))
    labels = {"kubernetes.io/metadata.name": "ml", "team": "mine"}
    assert inputs.topology is not None
    assert inputs.topology.namespaces == {"ml": labels}
    assert {name: dict(given) for name, given in inputs.facts.namespace_labels} == {"said": {"a": "b"}, "ml": labels}
    assert inputs.facts.cni == "cilium"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(JOB.encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    inputs = load_inputs(request("-"))
    assert inputs.objects[0].file == "<stdin>"
    inputs = load_inputs(request("-", stdin_text=POD % "x", stdin_name="chart/templates/x.yaml"))
    assert inputs.objects[0].file == "chart/templates/x.yaml"


def test_standard_input_that_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"\x00\x01")

    monkeypatch.setattr(sys, "stdin", Stdin())
    (problem,) = load_inputs(request("-", stdin_name="piped")).problems
    assert problem.location.file == "piped"


def test_a_pipe_can_be_named(tmp_path: Path) -> None:
    """``stallscope check <(helm template …)`` gives /dev/fd/63."""
    read_end, write_end = os.pipe()
    os.write(write_end, (POD % "x").encode())
    os.close(write_end)
    try:
        inputs = load_inputs(request(f"/dev/fd/{read_end}"))
    finally:
        os.close(read_end)
    assert [o.name for o in inputs.objects] == ["x"]


def test_paths_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingToCheck) as caught:
        load_inputs(request(tmp_path / "empty"))
    assert "no YAML or JSON files in" in caught.value.message
    assert load_inputs(request(tmp_path / "empty", allow_empty=True)).objects == ()
    with pytest.raises(NothingToCheck):
        load_inputs(request())


def test_one_empty_directory_of_several_is_told(tmp_path: Path) -> None:
    write(tmp_path, {"a/x.yaml": POD % "x"})
    (tmp_path / "b").mkdir()
    (problem,) = load_inputs(request(tmp_path / "a", tmp_path / "b")).problems
    assert problem.kind is ProblemKind.UNREADABLE
    assert str(problem.location) == str(tmp_path / "b")
    assert load_inputs(request(tmp_path / "a", tmp_path / "b", allow_empty=True)).problems == ()


def test_binary_and_broken_files_of_a_directory(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": POD % "x", "b.yaml": "apiVersion: v1\nkind: a: b\n", "tsconfig.json": TSCONFIG})
    (tmp_path / "c.yaml").write_bytes(b"\x7fELF\0")
    inputs = load_inputs(request(tmp_path))
    assert [o.name for o in inputs.objects] == ["x"]
    assert sorted((p.kind.value, Path(p.location.file).name) for p in inputs.problems) == [
        ("unreadable", "b.yaml"),
        ("unreadable", "c.yaml"),
    ]


def test_a_broken_file_that_the_user_named_is_always_told(tmp_path: Path) -> None:
    write(tmp_path, {"tsconfig.json": TSCONFIG})
    (problem,) = load_inputs(request(tmp_path / "tsconfig.json")).problems
    assert problem.kind is ProblemKind.UNREADABLE


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_files_that_may_not_be_read(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": POD % "x", "b.yaml": POD % "y"})
    (tmp_path / "b.yaml").chmod(0)
    (problem,) = load_inputs(request(tmp_path)).problems
    assert "permission denied" in problem.message
    with pytest.raises(LoadError) as caught:
        load_inputs(request(tmp_path / "b.yaml"))
    assert "permission denied" in caught.value.message


def test_size_limit(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "# " + "x" * 5000 + "\n" + POD % "x"})
    (problem,) = load_inputs(request(tmp_path, limits=Limits(json_size=1000))).problems
    assert "too large" in problem.message


def test_endless_input(tmp_path: Path) -> None:
    (problem,) = load_inputs(request("/dev/zero", limits=Limits(json_size=10_000))).problems
    assert "too large: more than" in problem.message


KUSTOMIZATION = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../base]
patches:
- path: job-patch.yaml
- patch: "- op: remove\\n  path: /spec\\n"
patchesStrategicMerge: [./more.yaml]
"""


def test_patches_of_a_kustomization_are_no_objects(tmp_path: Path) -> None:
    patch = "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: train}\nspec: {pytorchReplicaSpecs: 5}\n"
    write(
        tmp_path,
        {
            "base/job.yaml": JOB,
            "base/kustomization.yaml": "resources: [job.yaml]\n",
            "overlay/kustomization.yaml": KUSTOMIZATION,
            "overlay/job-patch.yaml": patch,
            "overlay/more.yaml": patch,
        },
    )
    inputs = load_inputs(request(tmp_path))
    assert [o.ref for o in inputs.objects] == ["PyTorchJob default/train"]
    assert inputs.problems == ()
    named = load_inputs(request(tmp_path / "overlay", tmp_path / "overlay" / "more.yaml"))
    assert [Path(o.file).name for o in named.objects] == ["more.yaml"]


def test_problems_come_in_the_order_of_the_files(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.yaml": POD % "x" + "---\napiVersion: v1\nkind: Pod\nmetadata: []\n---\na: b: c\n---\n" + POD % "x",
            "b.yaml": "apiVersion: 5\nkind: A\n",
        },
    )
    places = [str(p.location).rpartition("/")[2] for p in load_inputs(request(tmp_path)).problems]
    assert places == ["a.yaml:7:1", "a.yaml:9:5", "a.yaml:13:18", "b.yaml:1:1"]


def test_texts_in_memory() -> None:
    inputs = load_text({"job.yaml": JOB, "nodes.yaml": NODE})
    assert [j.ref for j in inputs.jobs] == ["PyTorchJob default/train"]
    assert inputs.topology is not None
    other = load_text({"job.yaml": JOB.replace("replicas: 3", "replicas: 1")}, topology=inputs.topology)
    assert other.topology == inputs.topology
    assert [len(j.pods) for j in other.jobs] == [2]


def test_the_same_texts_give_the_same_inputs(tmp_path: Path) -> None:
    write(tmp_path, {"job.yaml": JOB, "b.yaml": "kind: Job\nmetadata: {}\n", "odd.json": TSCONFIG})
    wanted = request(tmp_path, namespace="team")
    loaded = load(wanted)
    assert load_text(loaded.texts, wanted) == loaded.inputs


def test_the_namespace_of_the_user() -> None:
    inputs = load_text({"job.yaml": JOB}, LoadRequest(namespace="team"))
    assert inputs.jobs[0].namespace == "team"
