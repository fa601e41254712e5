"""
The config file: ``stallscope.yaml`` or ``.stallscope.yaml``, or ``[tool.stallscope]`` of ``pyproject.toml``, in the
working directory or the nearest directory above it, up to the repository's root. Its keys are the long flags.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stallscope.errors import UsageError
from stallscope.model.source import Location, span_of

YAML_NAMES = ("stallscope.yaml", ".stallscope.yaml")
MAX_BYTES = 1 << 20

SEVERITY = ("error", "warning", "info")


class Kind(NamedTuple):
    """What a key may hold: its name for people, and `read`, which gives the value or None when it is another type."""

    name: str
    read: Callable[[Any], Any]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _texts(value: Any) -> tuple[str, ...] | None:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(x, str) for x in items):
        return None
    return tuple(items)


def _pairs(value: Any) -> tuple[str, ...] | None:
    """Agent options as ``key=value``; true/false as Cilium writes them."""
    if not isinstance(value, Mapping) or not all(isinstance(v, str | bool | int) for v in value.values()):
        return None
    return tuple(f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in value.items())


def _choice(*allowed: str) -> Kind:
    return Kind(f"one of {', '.join(allowed)}", lambda v: v if v in allowed else None)


TEXT = Kind("text (quote a version: '1.30')", _text)
TEXTS = Kind("text or a list of texts", _texts)
FLAG = Kind("true or false", _flag)
PAIRS = Kind("a mapping of option names to values", _pairs)

#: Every key, with what it may hold. The published schema (render/schema/config-1.json) says the same; a test compares.
KEYS: dict[str, Kind] = {
    "nodes": TEXTS,
    "namespace": TEXT,
    "cni": TEXT,
    "k8s-version": TEXT,
    "cilium-option": PAIRS,
    "output": TEXTS,
    "fail-on": _choice(*SEVERITY, "never"),
    "min-severity": _choice(*SEVERITY),
    "select": TEXTS,
    "ignore": TEXTS,
    "strict": FLAG,
    "allow-empty": FLAG,
    "baseline": TEXT,
    "color": _choice("auto", "always", "never"),
}

#: Keys whose values are files, written relative to the config file.
PATHS = frozenset({"nodes", "baseline"})


class Config(NamedTuple):
    """A read config: values by key, checked and with paths made usable from the working directory."""

    file: str
    values: Mapping[str, Any]


def find_config(start: Path) -> Path | None:
    """
    The config file that applies in `start`: in it, or the nearest above it up to the directory that holds ``.git``;
    without a repository only `start` itself. Raises UsageError when a directory has both YAML names.
    """
    for directory in _searched(start):
        found = [directory / name for name in YAML_NAMES if (directory / name).is_file()]
        if len(found) > 1:
            raise UsageError(
                f"{found[0]}: {found[1].name} exists beside it; only one of them can apply",
                hint="delete or merge one of them",
            )
        if found:
            return found[0]
        project = directory / "pyproject.toml"
        if project.is_file() and _has_table(project):
            return project
    return None


def _searched(start: Path) -> list[Path]:
    start = start.absolute()
    above = [start, *start.parents]
    root = next((i for i, d in enumerate(above) if (d / ".git").exists()), 0)
    return above[: root + 1]


def _has_table(project: Path) -> bool:
    try:
        return "[tool.stallscope" in project.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def read_config(path: Path) -> Config:
    """Read and check a config file. Raises UsageError with ``file:line`` for anything wrong in it."""
    shown = os.path.relpath(path)
    try:
        with path.open("rb") as handle:
            raw = handle.read(MAX_BYTES + 1)
        text = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"config file {shown}: {reason}", hint="check the path, or leave --config out") from error
    if len(raw) > MAX_BYTES:
        raise UsageError(f"config file {shown}: larger than 1 MiB")
    tree, place = _from_toml(text, shown) if path.suffix == ".toml" else _from_yaml(text, shown)
    values = {key: _value(key, value, place) for key, value in tree.items()}
    return Config(file=shown, values={k: _anchored(v, path) if k in PATHS else v for k, v in values.items()})


Place = Callable[[str], str]


def _from_yaml(text: str, file: str) -> tuple[Mapping[str, Any], Place]:
    from stallscope.load.stream import parse_stream

    documents, problems = parse_stream(text, file=file)
    if problems:
        raise UsageError(f"{problems[0].location}: {problems[0].message}", hint=problems[0].hint)
    trees = [d.value for d in documents if d.value is not None]
    if len(trees) > 1:
        raise UsageError(f"{documents[1].location}: a config file is one document")
    tree = trees[0] if trees else {}
    if not isinstance(tree, Mapping):
        raise UsageError(f"{file}:1: a config file is a mapping of option names to values")
    return tree, lambda key: str(Location(file=file, span=span_of(tree, (key,))))


def _from_toml(text: str, file: str) -> tuple[Mapping[str, Any], Place]:
    import tomllib

    try:
        tool = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from error
    tree = tool.get("stallscope", {}) if isinstance(tool, Mapping) else {}
    if not isinstance(tree, Mapping):
        raise UsageError(f"{file}: [tool.stallscope] is not a table")
    return tree, lambda key: _toml_place(text, file, key)


def _toml_place(text: str, file: str, key: str) -> str:
    """``file:line`` of a key below [tool.stallscope]; tomllib keeps no positions, so this looks at the text."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        head = line.strip()
        if head.startswith("["):
            inside = head.startswith("[tool.stallscope")
            if inside and key in head.removeprefix("[tool.stallscope"):
                return f"{file}:{number}"
        elif inside and head.partition("=")[0].strip().strip("\"'") == key:
            return f"{file}:{number}"
    return file


def _value(key: str, value: Any, place: Place) -> Any:
    kind = KEYS.get(key)
    if kind is None:
        raise UsageError(f"{place(key)}: unknown option {key!r}{_instead(key)}", hint=f"options: {', '.join(KEYS)}")
    read = kind.read(value)
    if read is None:
        raise UsageError(f"{place(key)}: {key} must be {kind.name}, not {_shown(value)}")
    return read


def _instead(key: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(str(key).replace("_", "-"), KEYS, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "a mapping"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _anchored(value: Any, path: Path) -> Any:
    """Files named in a config file are relative to it; shown relative to the working directory."""
    if isinstance(value, tuple):
        return tuple(_anchored(v, path) for v in value)
    return os.path.relpath(path.absolute().parent / value)
