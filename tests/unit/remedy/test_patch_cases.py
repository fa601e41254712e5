"""Hand-made files and what a careful person would make of them, character by character."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stallscope.errors import PatchRefused
from stallscope.load.stream import parse_stream
from stallscope.remedy.ops import AddDocument, AppendItem, Op, ReplaceScalar, SetKey
from stallscope.remedy.patch import patch_text

ZONE = "topology.kubernetes.io/zone"
GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def parse(text: str) -> list[object]:
    documents, _ = parse_stream(text)
    found: list[object] = [None] * (max((d.index for d in documents), default=-1) + 1)
    for document in documents:
        found[document.index] = document.value
    return found


def put(path: str, value: object, *, doc: int = 0, first: str = "") -> SetKey:
    return SetKey(file="f", document=doc, route=route(path), value=value, first=first)


def add(path: str, item: object, *, doc: int = 0, first: str = "") -> AppendItem:
    return AppendItem(file="f", document=doc, route=route(path), item=item, first=first)


def swap(path: str, old: object, value: object, *, doc: int = 0) -> ReplaceScalar:
    return ReplaceScalar(file="f", document=doc, route=route(path), old=old, value=value)


def route(path: str) -> tuple[str | int, ...]:
    """``spec|tasks|0``; digits are indices."""
    return tuple(int(p) if p.isdigit() else p for p in path.split("|"))


@dataclass(frozen=True)
class Case:
    name: str
    before: str
    ops: list[Op]
    after: str


CASES = [
    Case(
        "new mapping at the top of a pod spec",
        "spec:\n  containers:\n    - name: a\n",
        [put(f"spec|nodeSelector|{ZONE}", "a", first="nodeSelector")],
        "spec:\n  nodeSelector:\n    topology.kubernetes.io/zone: a\n  containers:\n    - name: a\n",
    ),
    Case(
        "a comment above the first key stays with it",
        "spec:  # pods\n  # the trainer\n\n  containers:\n  - name: a\n",
        [put("spec|nodeSelector|z", "a", first="nodeSelector")],
        "spec:  # pods\n  nodeSelector:\n    z: a\n  # the trainer\n\n  containers:\n  - name: a\n",
    ),
    Case(
        "existing mapping gets the key last",
        "spec:\n  nodeSelector:\n    disk: ssd # fast\n  containers: []\n",
        [put("spec|nodeSelector|z", "a", first="nodeSelector")],
        "spec:\n  nodeSelector:\n    disk: ssd # fast\n    z: a\n  containers: []\n",
    ),
    Case(
        "four columns a level, dashes indented by two",
        "spec:\n    template:\n        x: 1\n    list:\n      - a\n",
        [add("spec|tolerations", GPU)],
        "spec:\n    template:\n        x: 1\n    list:\n      - a\n"
        "    tolerations:\n      - key: nvidia.com/gpu\n        operator: Exists\n        effect: NoSchedule\n",
    ),
    Case(
        "dashes below their key",
        "spec:\n  containers:\n  - name: a\n  restartPolicy: Never\n",
        [add("spec|tolerations", GPU)],
        "spec:\n  containers:\n  - name: a\n  restartPolicy: Never\n"
        "  tolerations:\n  - key: nvidia.com/gpu\n    operator: Exists\n    effect: NoSchedule\n",
    ),
    Case(
        "append to a block list, the next key's comment stays with the next key",
        "spec:\n  tolerations:\n  - key: a\n  # volumes follow\n  volumes: []\n",
        [add("spec|tolerations", {"key": "b"})],
        "spec:\n  tolerations:\n  - key: a\n  - key: b\n  # volumes follow\n  volumes: []\n",
    ),
    Case(
        "append behind a comment that belongs to the list",
        "spec:\n  tolerations:\n    - key: a\n      # effect: all\n  volumes: []\n",
        [add("spec|tolerations", {"key": "b"})],
        "spec:\n  tolerations:\n    - key: a\n      # effect: all\n    - key: b\n  volumes: []\n",
    ),
    Case(
        "comment at the dashes' column of an indented list belongs to the list",
        "spec:\n  tolerations:\n    - key: a\n    # - key: old\n  volumes: []\n",
        [add("spec|tolerations", {"key": "b"})],
        "spec:\n  tolerations:\n    - key: a\n    # - key: old\n    - key: b\n  volumes: []\n",
    ),
    Case(
        "blank line before the next key is kept below the new line",
        "a:\n  x: 1\n\nb: 2\n",
        [put("a|w", 2)],
        "a:\n  x: 1\n  w: 2\n\nb: 2\n",
    ),
    Case(
        "no final newline, and none is added",
        "a:\n  x: 1",
        [put("a|w", "z")],
        "a:\n  x: 1\n  w: z",
    ),
    Case(
        "no final newline and a trailing comment",
        "a:\n  x: 1 # one",
        [put("a|w", "z"), put("b", True)],
        "a:\n  x: 1 # one\n  w: z\nb: true",
    ),
    Case(
        "CRLF stays CRLF",
        "a:\r\n  x: 1\r\nb: 2\r\n",
        [put("a|w", "z")],
        "a:\r\n  x: 1\r\n  w: z\r\nb: 2\r\n",
    ),
    Case(
        "CRLF and a null",
        "a:\r\n  x:  # none\r\nb: 2\r\n",
        [add("a|x", "v")],
        "a:\r\n  x:  # none\r\n  - v\r\nb: 2\r\n",
    ),
    Case(
        "byte order mark stays",
        "\ufeffa:\n  x: 1\n",
        [put("a|w", "z")],
        "\ufeffa:\n  x: 1\n  w: z\n",
    ),
    Case(
        "second of three documents, marker with a comment",
        "--- # one\na: 1\n---  # two\na: 2\nm:\n  k: v\n--- # three\na: 3\n",
        [put("m|p", "w", doc=1)],
        "--- # one\na: 1\n---  # two\na: 2\nm:\n  k: v\n  p: w\n--- # three\na: 3\n",
    ),
    Case(
        "document end marker",
        "a:\n  x: 1\n...\n",
        [put("a|w", 2)],
        "a:\n  x: 1\n  w: 2\n...\n",
    ),
    Case(
        "directive and explicit document",
        "%YAML 1.1\n---\na:\n  x: 1\n",
        [put("a|w", 2)],
        "%YAML 1.1\n---\na:\n  x: 1\n  w: 2\n",
    ),
    Case(
        "empty value gets a list",
        "spec:\n  tolerations:\n  volumes: []\n",
        [add("spec|tolerations", {"key": "a"})],
        "spec:\n  tolerations:\n  - key: a\n  volumes: []\n",
    ),
    Case(
        "empty value with trailing comment gets a mapping",
        "spec:\n  nodeSelector:   # none yet\n  volumes: []\n",
        [put("spec|nodeSelector|z", "a")],
        "spec:\n  nodeSelector:   # none yet\n    z: a\n  volumes: []\n",
    ),
    Case(
        "explicit null",
        "spec:\n  nodeSelector: null # none yet\n  volumes: ~\n",
        [put("spec|nodeSelector|z", "a"), add("spec|volumes", "v")],
        "spec:\n  nodeSelector: # none yet\n    z: a\n  volumes:\n  - v\n",
    ),
    Case(
        "empty flow collections become blocks",
        "spec:\n  nodeSelector: {}  # none\n  tolerations: []\n",
        [put("spec|nodeSelector|z", "a"), add("spec|tolerations", {"key": "b", "operator": "Exists"})],
        "spec:\n  nodeSelector:  # none\n    z: a\n  tolerations:\n  - key: b\n    operator: Exists\n",
    ),
    Case(
        "flow mapping on one line",
        "spec:\n  nodeSelector: {disk: ssd}\n",
        [put(f"spec|nodeSelector|{ZONE}", "a")],
        "spec:\n  nodeSelector: {disk: ssd, topology.kubernetes.io/zone: a}\n",
    ),
    Case(
        "flow mapping with inner spaces",
        "m: { a: 1 }\n",
        [put("m|b", "two words")],
        'm: { a: 1, b: "two words" }\n',
    ),
    Case(
        "flow list of flow mappings",
        "spec:\n  tolerations: [{key: a, operator: Exists}] # gpu\n",
        [add("spec|tolerations", {"key": "b", "operator": "Exists"})],
        "spec:\n  tolerations: [{key: a, operator: Exists}, {key: b, operator: Exists}] # gpu\n",
    ),
    Case(
        "flow with trailing comma",
        "l: [a, b,]\n",
        [add("l", "c")],
        "l: [a, b, c,]\n",
    ),
    Case(
        "flow over several lines, no trailing comma, comment on the last",
        "l: [\n  a, # first\n  b  # second\n]\n",
        [add("l", "c")],
        "l: [\n  a, # first\n  b,  # second\n  c\n]\n",
    ),
    Case(
        "flow over several lines, trailing comma and comment",
        "m: {\n    a: 1,\n    b: 2, # two\n}\n",
        [put("m|c", 3)],
        "m: {\n    a: 1,\n    b: 2, # two\n    c: 3,\n}\n",
    ),
    Case(
        "flow over several lines that closes on the last member's line",
        "l: [a,\n    b]\n",
        [add("l", "c")],
        "l: [a,\n    b,\n    c]\n",
    ),
    Case(
        "lone key in a flow mapping",
        "m: {a, b: }\n",
        [put("m|c", 3)],
        "m: {a, b: , c: 3}\n",
    ),
    Case(
        "new value below a flow mapping's null",
        "m: {a: null, b: 1}\n",
        [add("m|a", "x")],
        "m: {a: [x], b: 1}\n",
    ),
    Case(
        "block scalar as the last value",
        "spec:\n  args:\n  - |\n    torchrun \\\n      # not a comment\n      train.py\n\n# end\n",
        [put("spec|x", 1)],
        "spec:\n  args:\n  - |\n    torchrun \\\n      # not a comment\n      train.py\n  x: 1\n\n# end\n",
    ),
    Case(
        "kept block scalar owns its blank lines",
        "spec:\n  script: |+\n    one\n\n\nb: 2\n",
        [put("spec|x", 1)],
        "spec:\n  script: |+\n    one\n\n\n  x: 1\nb: 2\n",
    ),
    Case(
        "folded plain scalar over lines",
        "spec:\n  note: one\n    two\n    three # end\nb: 2\n",
        [put("spec|x", 1)],
        "spec:\n  note: one\n    two\n    three # end\n  x: 1\nb: 2\n",
    ),
    Case(
        "item that starts on the dash line",
        "tasks:\n  - name: master\n    replicas: 1\n  - name: worker\n    replicas: 4\n",
        [put("tasks|0|policy", "x"), put("tasks|1|policy", "v", first="policy")],
        "tasks:\n  - name: master\n    replicas: 1\n    policy: x\n  - name: worker\n    replicas: 4\n    policy: v\n",
    ),
    Case(
        "list inside a list",
        "m:\n- - a\n  - b\n- c\n",
        [add("m|0", "x"), add("m", ["d", "e"])],
        "m:\n- - a\n  - b\n  - x\n- c\n- - d\n  - e\n",
    ),
    Case(
        "kind: List, second item",
        "apiVersion: v1\nkind: List\nitems:\n- kind: A\n  spec:\n    x: 1\n- kind: B\n  spec:\n    x: 1\n",
        [put("items|1|spec|w", 2)],
        "apiVersion: v1\nkind: List\nitems:\n- kind: A\n  spec:\n    x: 1\n- kind: B\n  spec:\n    x: 1\n    w: 2\n",
    ),
    Case(
        "template inside an AppWrapper",
        "kind: AppWrapper\nspec:\n  components:\n  - template:\n      kind: Job\n      spec:\n        template:\n"
        "          spec:\n            containers: [{name: a}]\n",
        [put("spec|components|0|template|spec|template|spec|nodeSelector|z", "a", first="nodeSelector")],
        "kind: AppWrapper\nspec:\n  components:\n  - template:\n      kind: Job\n      spec:\n        template:\n"
        "          spec:\n            nodeSelector:\n              z: a\n            containers: [{name: a}]\n",
    ),
    Case(
        "JSON as kubectl writes it",
        '{\n    "kind": "Job",\n    "spec": {\n        "template": {\n            "spec": {\n'
        '                "containers": [\n                    {\n                        "name": "a"\n'
        "                    }\n                ]\n            }\n        }\n    }\n}\n",
        [put("spec|template|spec|tolerations", [{"key": "a"}])],
        '{\n    "kind": "Job",\n    "spec": {\n        "template": {\n            "spec": {\n'
        '                "containers": [\n                    {\n                        "name": "a"\n'
        "                    }\n                ],\n"
        '                "tolerations": [\n                    {\n                        "key": "a"\n'
        "                    }\n                ]\n            }\n        }\n    }\n}\n",
    ),
    Case(
        "JSON, two columns, append to a list",
        '{\n  "l": [\n    {\n      "a": 1\n    }\n  ]\n}',
        [add("l", {"b": [True, None]})],
        '{\n  "l": [\n    {\n      "a": 1\n    },\n    {\n      "b": [\n        true,\n        null\n      ]\n    }\n  ]\n}',
    ),
    Case(
        "JSON, empty object and null",
        '{\n  "a": {},\n  "b": null\n}\n',
        [put("a|x", 1), add("b", "y")],
        '{\n  "a": {\n    "x": 1\n  },\n  "b": [\n    "y"\n  ]\n}\n',
    ),
    Case(
        "compact JSON",
        '{"a":{"b":1}}',
        [put("a|c", {"d": "e"})],
        '{"a":{"b":1,"c":{"d":"e"}}}',
    ),
    Case(
        "strings that look like something else are quoted",
        "m:\n  a: b\n",
        [put("m|l", {"x": "true", "r": "1", "z": "no", "w": "1e3", "v": "", "u": "0777", "t": "a: b", "s": "2001-01-01"})],
        'm:\n  a: b\n  l:\n    x: "true"\n    r: "1"\n    z: "no"\n    w: "1e3"\n    v: ""\n    u: "0777"\n    t: "a: b"\n'
        '    s: "2001-01-01"\n',
    ),
    Case(
        "image references and prefixed label keys stay plain in a block",
        "m:\n  a: b\n",
        [put("m|k8s:app", "registry.example/x:v1")],
        "m:\n  a: b\n  k8s:app: registry.example/x:v1\n",
    ),
    Case(
        "replace a plain scalar",
        "a:\n  k: old   # why\n  l: 1\n",
        [swap("a|k", "old", "new-value")],
        "a:\n  k: new-value   # why\n  l: 1\n",
    ),
    Case(
        "replace keeps the quotes of the old scalar",
        "a: 'eth0'\nb: \"eth0\"\n",
        [swap("a", "eth0", "it's"), swap("b", "eth0", "ens5")],
        "a: 'it''s'\nb: \"ens5\"\n",
    ),
    Case(
        "several edits at one place: inner first",
        "spec:\n  tolerations:\n  - key: a\n",
        [put("spec|x", 1), add("spec|tolerations", {"key": "b"}), put("top", 2), put("spec|tolerations|0|effect", "E")],
        "spec:\n  tolerations:\n  - key: a\n    effect: E\n  - key: b\n  x: 1\ntop: 2\n",
    ),
    Case(
        "two operations build one new mapping",
        "spec:\n  a: 1\n",
        [add("spec|affinity|podAffinity|required", {"k": 1}), add("spec|affinity|nodeAffinity|terms", {"k": 2})],
        "spec:\n  a: 1\n  affinity:\n    podAffinity:\n      required:\n      - k: 1\n"
        "    nodeAffinity:\n      terms:\n      - k: 2\n",
    ),
    Case(
        "an equal value is left alone",
        "spec:\n    nodeSelector: {z: a}\n    tolerations:\n    -   key: x\n",
        [put("spec|nodeSelector|z", "a"), add("spec|tolerations", {"key": "x"})],
        "spec:\n    nodeSelector: {z: a}\n    tolerations:\n    -   key: x\n",
    ),
    Case(
        "an anchored mapping whose users all want the same",
        "master:\n  spec: &pod\n    a: 1\nworker:\n  spec: *pod\n",
        [put("master|spec|z", "a"), put("worker|spec|z", "a")],
        "master:\n  spec: &pod\n    a: 1\n    z: a\nworker:\n  spec: *pod\n",
    ),
    Case(
        "a merge key beside own keys takes a new key",
        "base: &b {x: 1}\nspec:\n  <<: *b\n  w: 2\n",
        [put("spec|z", "a")],
        "base: &b {x: 1}\nspec:\n  <<: *b\n  w: 2\n  z: a\n",
    ),
    Case(
        "a mapping made of a merge key only",
        "base: &b {x: 1}\nspec:\n  <<: *b\nend: 1\n",
        [put("spec|z", "a")],
        "base: &b {x: 1}\nspec:\n  <<: *b\n  z: a\nend: 1\n",
    ),
    Case(
        "tabs before a comment and odd spacing survive",
        "a:   1\t# tab\nm:\n   x :  2\n",
        [put("m|w", 3)],
        "a:   1\t# tab\nm:\n   x :  2\n   w: 3\n",
    ),
    Case(
        "a repeated key",
        "m:\n  a: 1\n  b: 2\n  a: 3\np: 1\n",
        [put("m|c", 4)],
        "m:\n  a: 1\n  b: 2\n  a: 3\n  c: 4\np: 1\n",
    ),
    Case(
        "comment-only tail of the file belongs to nobody above",
        "spec:\n  a:\n    b: 1\n# vim: set ts=2\n",
        [put("spec|a|c", 2)],
        "spec:\n  a:\n    b: 1\n    c: 2\n# vim: set ts=2\n",
    ),
    Case(
        "key written in quotes, hash inside a string",
        'm:\n  "a#b": "x # y" # z\n',
        [put("m|c", "#d")],
        'm:\n  "a#b": "x # y" # z\n  c: "#d"\n',
    ),
    Case(
        "a document is appended in the file's own style",
        "a:\n    b: 1\n    l:\n        - x",
        [AddDocument(file="f", body={"kind": "X", "spec": {"l": ["v"]}}, comment="why\nmore")],
        "a:\n    b: 1\n    l:\n        - x\n---\n# why\n# more\nkind: X\nspec:\n    l:\n        - v\n",
    ),
    Case(
        "a new file",
        "",
        [AddDocument(file="f", body={"kind": "X", "l": [{"a": 1, "b": {}}]})],
        "kind: X\nl:\n- a: 1\n  b: {}\n",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_text_becomes(case: Case) -> None:
    assert patch_text(case.before, case.ops, parse) == case.after


REFUSED = [
    Case("a value is already there", "a:\n  z: b\n", [put("a|z", "a")], "already set"),
    Case("a list index that is not there", "l: [a]\n", [put("l|1|x", 1)], "does not exist"),
    Case("a document that is not there", "a: 1\n", [put("b", 1, doc=1)], "document 1"),
    Case("a scalar in the way", "a: text\n", [put("a|b", 1)], "no mapping"),
    Case("a mapping where a list should be", "a: {b: 1}\n", [add("a", 1)], "no list"),
    Case("replacing what has changed", "a: new\n", [swap("a", "old", "x")], "is not 'old'"),
    Case("replacing a block scalar", "a: |\n  text\n", [swap("a", "text\n", "x")], "written as |"),
    Case(
        "an anchor used elsewhere",
        "master:\n  spec: &pod\n    a: 1\nworker:\n  spec: *pod\n",
        [put("master|spec|z", "a")],
        "anchored",
    ),
    Case(
        "an alias of something used elsewhere",
        "master:\n  spec: &pod\n    a: 1\nworker:\n  spec: *pod\n",
        [put("worker|spec|z", "a")],
        "anchored",
    ),
    Case(
        "users of an anchor want different things",
        "master:\n  spec: &pod\n    a: 1\nworker:\n  spec: *pod\n",
        [put("master|spec|z", "a"), put("worker|spec|z", "b")],
        "anchored",
    ),
    Case("what a merge key brought in", "b: &b {t: [x]}\ns:\n  <<: *b\n  w: 2\n", [add("s|t", "z")], "merge key"),
    Case("an anchored scalar used elsewhere", "a: &p eth0\nb: *p\n", [swap("a", "eth0", "ens5")], "written as &p"),
    Case("JSON takes no second document", '{"a": 1}', [AddDocument(file="f", body={"b": 1})], "JSON"),
    Case("an empty mapping that holds a comment", "a: {\n  # later\n}\n", [put("a|b", 1)], "comment"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: c.name)
def test_is_refused_with_the_snippet(case: Case) -> None:
    with pytest.raises(PatchRefused) as refused:
        patch_text(case.before, case.ops, parse)
    assert case.after in refused.value.message
    assert refused.value.hint.startswith("# in f")


def test_a_large_json_dump_is_patched_in_its_one_item() -> None:
    """Dumps above the small-file limit are read without places; the item that is edited gets them on demand."""
    filler = "".join(f'    {{"kind": "ConfigMap", "data": {{"k{i}": "{"x" * 400} # no comment"}}}},\n' for i in range(800))
    text = (
        '{\n  "kind": "List",\n  "items": [\n'
        + filler
        + '    {\n      "kind": "Job",\n      "spec": {\n        "a": 1\n      }\n    }\n  ]\n}\n'
    )
    assert len(text) > 256 * 1024
    patched = patch_text(text, [put("items|800|spec|b", {"c": ["d"]})], parse)
    assert patched == text.replace(
        '        "a": 1\n', '        "a": 1,\n        "b": {\n          "c": [\n            "d"\n          ]\n        }\n'
    )
