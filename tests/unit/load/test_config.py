from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from stallscope.errors import UsageError
from stallscope.load.config import KEYS, find_config, read_config
from stallscope.render import schema

FULL = """\
nodes: [nodes.yaml, more/nodes.yaml]
namespace: train
cni: cilium@1.18.7
k8s-version: "1.30"
cilium-option:
  enable-policy: always
  enable-host-firewall: true
output: text
fail-on: warning
min-severity: info
select: [STL1, STL2]
ignore: STL203
strict: true
allow-empty: false
baseline: accepted.json
color: never
"""


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_key(there) -> None:
    Path("sub").mkdir()
    path = Path("sub/stallscope.yaml")
    path.write_text(FULL)
    values = read_config(path).values
    assert set(values) == set(KEYS)
    assert values["nodes"] == ("sub/nodes.yaml", "sub/more/nodes.yaml")
    assert values["baseline"] == "sub/accepted.json"
    assert values["cilium-option"] == ("enable-policy=always", "enable-host-firewall=true")
    assert values["output"] == ("text",)
    assert values["ignore"] == ("STL203",)
    assert values["k8s-version"] == "1.30"
    assert values["strict"] is True and values["allow-empty"] is False


def test_the_same_in_pyproject(there) -> None:
    path = Path("pyproject.toml")
    path.write_text(
        '[project]\nname = "x"\n[tool.stallscope]\nnodes = "n.yaml"\nfail-on = "never"\n'
        "[tool.stallscope.cilium-option]\nenable-policy = 'never'\n"
    )
    assert find_config(there) == there / "pyproject.toml"
    assert read_config(path).values == {
        "nodes": ("n.yaml",),
        "fail-on": "never",
        "cilium-option": ("enable-policy=never",),
    }


def test_the_published_schema_names_the_same_keys(there) -> None:
    import yaml

    published = json.loads(schema.read("config-1"))
    assert set(published["properties"]) == set(KEYS)
    jsonschema.Draft202012Validator(published).validate(yaml.safe_load(FULL))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("strict: true\nfail_on: error\n", "c.yaml:2:1: unknown option 'fail_on'; did you mean 'fail-on'?"),
        ("x: 1\n", "c.yaml:1:1: unknown option 'x'"),
        ("# c\nfail-on: sometimes\n", "c.yaml:2:1: fail-on must be one of error, warning, info, never, not 'sometimes'"),
        ("k8s-version: 1.30\n", "c.yaml:1:1: k8s-version must be text (quote a version: '1.30'), not 1.3"),
        ("strict: 'yes'\n", "c.yaml:1:1: strict must be true or false, not 'yes'"),
        ("nodes: {a: b}\n", "c.yaml:1:1: nodes must be text or a list of texts, not a mapping"),
        ("nodes: [1]\n", "c.yaml:1:1: nodes must be text or a list of texts, not a list"),
        ("baseline:\n", "c.yaml:1:1: baseline must be text (quote a version: '1.30'), not nothing"),
        ("- a\n", "c.yaml:1: a config file is a mapping of option names to values"),
        ("strict: true\n---\nstrict: false\n", "c.yaml:3:1: a config file is one document"),
    ],
)
def test_errors_name_the_line_and_the_remedy(there, text, message) -> None:
    Path("c.yaml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_config(Path("c.yaml"))
    assert caught.value.message == message


def test_broken_yaml_and_toml_are_one_line(there) -> None:
    Path("c.yaml").write_text("a: [\n")
    with pytest.raises(UsageError, match=r"^c\.yaml:\d+:\d+: "):
        read_config(Path("c.yaml"))
    Path("pyproject.toml").write_text("[tool.stallscope\n")
    with pytest.raises(UsageError, match=r"^pyproject\.toml: "):
        read_config(Path("pyproject.toml"))
    Path("pyproject.toml").write_text("[tool.stallscope]\nstrict = true\nstrikt = 1\n")
    with pytest.raises(UsageError, match=r"^pyproject\.toml:3: unknown option 'strikt'; did you mean 'strict'\?"):
        read_config(Path("pyproject.toml"))


def test_files_that_cannot_be_read(there) -> None:
    with pytest.raises(UsageError, match=r"config file none\.yaml: No such file"):
        read_config(Path("none.yaml"))
    Path("b.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"config file b\.yaml: not UTF-8 text"):
        read_config(Path("b.yaml"))


def test_the_nearest_file_up_to_the_repository_counts(there) -> None:
    deep = there / "repo" / "a" / "b"
    deep.mkdir(parents=True)
    (there / "stallscope.yaml").write_text("")
    assert find_config(deep) is None  # no repository: only the directory itself
    (there / "repo" / ".git").mkdir()
    assert find_config(deep) is None  # above the repository's root nothing counts
    (there / "repo" / ".stallscope.yaml").write_text("")
    assert find_config(deep) == there / "repo" / ".stallscope.yaml"
    (deep / "pyproject.toml").write_text("[tool.other]\n")
    assert find_config(deep) == there / "repo" / ".stallscope.yaml"
    (deep / "pyproject.toml").write_text("[tool.stallscope]\n")
    assert find_config(deep) == deep / "pyproject.toml"
    (deep / "stallscope.yaml").write_text("")
    assert find_config(deep) == deep / "stallscope.yaml"


def test_two_files_beside_each_other_are_refused(there) -> None:
    (there / "stallscope.yaml").write_text("")
    (there / ".stallscope.yaml").write_text("")
    with pytest.raises(UsageError, match="exists beside it"):
        find_config(there)
