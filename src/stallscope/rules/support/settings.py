"""
What a container sets: variables in ``env`` and in its command line, and command-line flags. Values the manifest does not
state (``valueFrom``, ``$VAR``, ``envFrom``, a script in the image) are unknown and never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stallscope.model.source import Location, as_list, as_str, dig
from stallscope.model.workload import Role, TrainingJob
from stallscope.rules.support.containers import Container, rank_containers

#: NAME=value in a shell line or after mpirun's -x; quotes are optional.
_ASSIGNMENT = re.compile(r"""(?:^|[\s;&"'(])([A-Z][A-Z0-9_]{3,})=("[^"\n]*"|'[^'\n]*'|[^\s;&"')\\]+)""", re.MULTILINE)
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#[^\n]*$")
_MAX_TEXT = 100_000


class Setting(NamedTuple):
    """One variable or flag with a literal value."""

    name: str
    value: str
    location: Location
    container: Container
    by: str  # "env" | "command" | "flag"


def settings(container: Container) -> tuple[Setting, ...]:
    """Variables with literal values, ``env`` entries first; ill-typed entries are skipped."""
    return (*_from_env(container), *_from_command(container))


def setting(container: Container, name: str) -> Setting | None:
    """The setting of that variable that wins: an assignment in the command runs after ``env`` was set."""
    found = [s for s in settings(container) if s.name == name]
    return found[-1] if found else None


def sets(container: Container, *names: str) -> bool:
    """True when the container sets one of the variables in any way, with a literal value or not."""
    declared = {as_str(dig(e, "name")) for e in as_list(container.body.get("env"))}
    text = "\n".join(t for t, _ in _command_texts(container))
    return any(n in declared or f"{n}=" in text for n in names)


def opaque(container: Container) -> bool:
    """True when variables come from somewhere the manifest does not show (``envFrom``)."""
    return bool(as_list(container.body.get("envFrom")))


def role_setting(role: Role, name: str) -> Setting | None:
    """The setting of that variable in the role's rank containers, if any."""
    return next((s for c in rank_containers(role) if (s := setting(c, name)) is not None), None)


def job_settings(job: TrainingJob, *names: str) -> Iterator[tuple[Role, Setting]]:
    """Every literal setting of those variables in any role, launchers included (mpirun -x)."""
    for role in job.roles:
        if role.replicas <= 0:
            continue
        for container in rank_containers(role):
            for name in names:
                found = setting(container, name)
                if found is not None:
                    yield role, found


def flag(container: Container, *names: str) -> Setting | None:
    """The last literal value of a command-line flag (``--a=b`` or ``--a b``) under any of its spellings."""
    found: Setting | None = None
    tokens = _tokens(container)
    for i, (word, place) in enumerate(tokens):
        name, equals, value = word.partition("=")
        if name not in names:
            continue
        follows = not equals and i + 1 < len(tokens) and not tokens[i + 1][0].startswith("-")
        text, where = tokens[i + 1] if follows else (value, place)
        if text and "$" not in text:
            found = Setting(name, text.strip("\"'"), where, container, "flag")
    return found


def has_token(container: Container, *names: str) -> bool:
    """True when the command line holds one of those words."""
    return any(word in names for word, _ in _tokens(container))


def command_text(container: Container) -> str:
    """Command and arguments as one text, comments left out."""
    return "\n".join(t for t, _ in _command_texts(container))


def _from_env(container: Container) -> Iterator[Setting]:
    for i, entry in enumerate(as_list(container.body.get("env"))):
        name, value = as_str(dig(entry, "name")), dig(entry, "value")
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            continue
        if name and "$(" not in str(value):
            yield Setting(name, str(value), container.at("env", i, "value"), container, "env")


def _from_command(container: Container) -> Iterator[Setting]:
    for text, place in _command_texts(container):
        for name, value in _ASSIGNMENT.findall(text):
            bare = value.strip("\"'")
            if bare and "$" not in bare and "{{" not in bare:
                yield Setting(name, bare, place, container, "command")


def _command_texts(container: Container) -> list[tuple[str, Location]]:
    found = []
    for section in ("command", "args"):
        for i, item in enumerate(as_list(container.body.get(section))):
            if isinstance(item, str) and len(item) <= _MAX_TEXT:
                found.append((_COMMENT.sub("", item), container.at(section, i)))
    return found


def _tokens(container: Container) -> Sequence[tuple[str, Location]]:
    return [(word, place) for text, place in _command_texts(container) for word in text.split() if word != "\\"]
