"""Templates that nobody rendered: one problem a file, at the first mark, with the engine's own way out."""

from __future__ import annotations

import pytest

from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.load.stream import parse_stream
from stallscope.load.templates import kustomize_origin

JOB = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\nspec:\n  parallelism: {number}\n"


def problems_of(text: str) -> list[Problem]:
    return list(parse_stream(text, file="t.yaml")[1])


HELM = """\
# {{ in a comment }} does not count
{{- if .Values.enabled }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "chart.fullname" . }}
  labels:
    {{- toYaml .Values.labels | nindent 4 }}
{{- end }}
"""


@pytest.mark.parametrize(
    ("text", "line", "column", "what", "way_out"),
    [
        (HELM, 2, 1, "a Helm template", "helm template CHART | stallscope check -"),
        (JOB.format(name="x", number="{{ .Values.n }}"), 6, 16, "a Helm template", "helm template"),
        (JOB.format(name="{{ .Name }}", number=1), 4, 9, "a Go template", "render it first"),
        (JOB.format(name="x", number="{{ n }}"), 6, 16, "a template", "render it first"),
        ("{% for i in range(3) %}\n" + JOB.format(name="x-{{ i }}", number=1), 1, 1, "a Jinja template", "render it first"),
        ("a: b\nimage: x:{{ .Values.tag }}\n  bad: {{ y }}\n", 2, 10, "a Helm template", "helm template"),
    ],
)
def test_templates_that_are_no_yaml(text: str, line: int, column: int, what: str, way_out: str) -> None:
    (problem,) = problems_of(text)
    assert problem.kind is ProblemKind.UNRENDERED
    assert problem.location.span[:2] == (line, column)
    assert what in problem.message
    assert way_out in problem.hint


@pytest.mark.parametrize("number", ["$WORKERS", "${WORKERS}", "${WORKERS:-2}", '"{{ .Values.n }}"', '"{{workers}}"'])
def test_a_placeholder_where_a_number_belongs_leaves_nothing_to_judge(number: str) -> None:
    documents, problems = parse_stream(JOB.format(name="x", number=number) + "---\n" + JOB.format(name="y-1", number=1))
    assert [d.value is None for d in documents] == [True, False]
    (problem,) = problems
    assert problem.kind is ProblemKind.UNRENDERED
    assert problem.location.span[:2] == (6, 16)


def test_a_placeholder_in_a_name_is_told_but_judged() -> None:
    documents, (problem,) = parse_stream(JOB.format(name="train-$USER", number=1))
    assert documents[0].value is not None
    assert problem.kind is ProblemKind.UNRENDERED
    assert problem.location.span[:2] == (4, 9)
    assert "envsubst" in problem.hint


def test_one_problem_a_file() -> None:
    text = "---\n".join(JOB.format(name="$A", number="$N") for _ in range(5))
    assert len(problems_of(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        # Kubernetes' own $(NAME), the shell's $NAME in a command, a Prometheus template in a block, an Argo expression
        JOB.format(name="x", number=1) + "  template: {spec: {containers: [{args: ['$(HOST)', 'echo $HOME']}]}}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  rule: |\n    {{ $labels.pod }} {{- if x }}\n",
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: '{{workflow.name}}'}\nspec:\n"
        "  parallelism: '{{inputs.parameters.n}}'\n",
        "replicas: $N\nname: '{{ x }}'\n",  # no manifest
    ],
)
def test_what_only_looks_like_a_template(text: str) -> None:
    assert problems_of(text) == []


def test_broken_yaml_with_a_mark_elsewhere_is_broken_yaml() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\ndata:\n  rule: |\n    x {{ $labels.pod }}\n bad: 1\n"
    (problem,) = problems_of(text)
    assert problem.kind is ProblemKind.UNREADABLE
    assert problem.location.span.line == 6


def parse(text: str) -> object:
    return parse_stream(text)[0][0].value


@pytest.mark.parametrize(
    ("annotations", "origin"),
    [
        ({}, ""),
        ({"config.kubernetes.io/origin": "path: base/job.yaml\n"}, "base/job.yaml"),
        (
            {"config.kubernetes.io/origin": "path: config/x.yaml\nrepo: https://git.example/r\nref: v1.2\n"},
            "https://git.example/r@v1.2:config/x.yaml",
        ),
        ({"config.kubernetes.io/origin": "configuredIn: gen.yaml\nconfiguredBy: {kind: X}\n"}, "gen.yaml"),
        ({"config.kubernetes.io/origin": "[1, 2]"}, ""),
        ({"config.kubernetes.io/path": "a.yaml"}, "a.yaml"),
        ({"internal.config.kubernetes.io/path": "b.yaml"}, "b.yaml"),
    ],
)
def test_kustomize_origin(annotations: dict[str, str], origin: str) -> None:
    assert kustomize_origin(annotations, parse) == origin
