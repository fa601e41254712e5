"""What can be wrong with a text, said so that a person can act on it."""

from __future__ import annotations

from typing import NamedTuple

from yaml.error import MarkedYAMLError

from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.load.limits import MIB
from stallscope.model.places import Places
from stallscope.model.source import Location


class Complaint(NamedTuple):
    """
    Something wrong at ``text[start:end]``. `refused`: no object may be made of the document; `stop`: the rest of the
    file is not read either.
    """

    kind: ProblemKind
    message: str
    hint: str
    start: int
    end: int
    refused: bool = False
    stop: bool = False

    def problem(self, file: str, places: Places) -> Problem:
        location = Location(file=file, span=places.span(self.start, self.end))
        return Problem(kind=self.kind, message=self.message, location=location, hint=self.hint)


class Refusal(Exception):
    """A document cannot be built at all."""

    def __init__(self, message: str, hint: str, start: int, end: int, *, stop: bool = False) -> None:
        super().__init__(message)
        self.complaint = unreadable(message, hint, start, end, stop=stop)


def unreadable(message: str, hint: str, start: int, end: int | None = None, *, stop: bool = False) -> Complaint:
    """The complaint that a text cannot be read from `start` on."""
    return Complaint(
        kind=ProblemKind.UNREADABLE,
        message=message,
        hint=hint,
        start=start,
        end=start if end is None else end,
        refused=True,
        stop=stop,
    )


#: libyaml's words -> what to do. The first that occurs in the message counts.
_HINTS = (
    ("mapping values are not allowed", "check the indentation of this line, or quote a value that contains ': '"),
    ("did not find expected '-' indicator", "a list ends here: indent this line like the items above, or further left"),
    ("did not find expected key", "check the indentation of this line against the lines above"),
    ("could not find expected ':'", "a key without ':' stands here or on the line above"),
    ("found unexpected end of stream", "a quote or bracket that opens there is never closed"),
    ("found unexpected document indicator", "a quote that opens above is never closed"),
    ("expected ',' or '}'", "close the { that opens above, or put a comma between the entries"),
    ("expected ',' or ']'", "close the [ that opens above, or put a comma between the items"),
    ("expected node content", "a bracket that opens above is never closed, or a comma is too many"),
    ("unknown escape character", "double the backslash, or use single quotes"),
    ("Unicode character escape", "write the character itself instead of its escape"),
    ("expected <document start>", "put --- on a line of its own between documents"),
    ("undefined tag handle", "remove the tag, or quote the value if it starts with !"),
)


def from_yaml_error(error: MarkedYAMLError, places: Places, shift: int, floor: int) -> Complaint:
    """The complaint for a parser's error; `shift` turns its offsets into the text's, `floor` is where it began to read."""
    text = places.text
    mark = error.problem_mark or error.context_mark
    at = min(max((mark.index if mark else 0) + shift, floor), len(text))
    problem = str(error.problem or error.context or "it does not parse")
    character = text[at : at + 1]
    if "cannot start any token" in problem:
        if character == "\t":
            return unreadable("not YAML: a tab stands where only spaces may indent", "replace the tab by spaces", at, at + 1)
        return unreadable(f"not YAML: {character!r} cannot start a value", "quote the value", at, at + 1)
    message = f"not YAML: {problem}"
    if error.context and error.context_mark and mark and error.context_mark.line != mark.line:
        began, _ = places.position(error.context_mark.index + shift)
        message += f" ({error.context} that begins at line {began})"
    hint = next((h for words, h in _HINTS if words in problem), "check the indentation and the quotes around this line")
    return unreadable(message, hint, at, min(at + 1, len(text)))


def forbidden_character(character: str, at: int) -> Complaint:
    message = f"not YAML: the character U+{ord(character):04X} is not allowed, not even in quotes"
    hint = "remove it (a copied terminal colour?), or escape it inside double quotes"
    return unreadable(message, hint, at, at + 1)


def gave_up(broken: int, at: int) -> Complaint:
    return unreadable(f"{broken} documents of this file are unreadable; the rest is not read", "repair those first", at)


def too_large(size: int, allowed: int, *, more: bool = False) -> Complaint:
    """The complaint that a file is too large; `more`: larger than `size`, its end was not reached."""
    shown = "more" if more else f"{size / MIB:,.1f} MiB, more"
    message = f"too large: {shown} than the {allowed / MIB:,.0f} MiB that are read of one file"
    return unreadable(message, "split the file", 0)
