"""
YAML (and JSON) text to documents whose every key, value and item knows its place.

The text is read with PyYAML's libyaml events and our own `Builder`. A document that cannot be read costs one clear
`Problem`; reading goes on at the next ``---``.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import DocumentStartEvent, StreamEndEvent

from stallscope.judge.inputs import Problem, ProblemKind
from stallscope.load.builder import Builder
from stallscope.load.complaints import (
    Complaint,
    Refusal,
    forbidden_character,
    from_yaml_error,
    gave_up,
    too_large,
    unreadable,
)
from stallscope.load.jsondump import SMALL, NotJson, looks_like_json, read_json
from stallscope.load.limits import Limits
from stallscope.load.templates import broken_by_template, helm_source, placeholder_in, unrendered
from stallscope.load.text import next_unprintable, unprintable
from stallscope.model.places import Places
from stallscope.model.source import Location, MapNode

try:
    from yaml._yaml import CParser
except ImportError:  # PyYAML without libyaml: thirty times slower, the same events
    _new_parser: Callable[[str], Any] = yaml.Loader
else:
    _new_parser = CParser

_SEPARATOR = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_BYTE_ORDER_MARK = "\ufeff"
_TOLD = 200  # complaints of a file after which slips that refuse nothing are no longer told
_MOST_DIRECTIVES = 100
_DIRECTIVES = re.compile(rf"(?:^%[^\n]*\n(?:[ \t\r]*(?:#[^\n]*)?\n)*){{{_MOST_DIRECTIVES}}}", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """
    One document. `index` counts every document of the file, unreadable ones too; `value` is its tree (None when empty);
    `rendered_from` the template that ``helm template`` names above it.
    """

    index: int
    value: Any
    start: int
    end: int
    file: str
    places: Places
    rendered_from: str = ""

    @property
    def location(self) -> Location:
        span = self.places.span(self.start, self.end)
        return Location(file=self.file, span=span, rendered_from=self.rendered_from)


def parse_stream(
    text: str, *, file: str = "", limits: Limits | None = None
) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    """The documents of `text`, and what is wrong with it. Never raises; offsets count characters of `text`."""
    reader = _Reader(text, file, limits or Limits())
    with _no_garbage_collection():
        reader.run()
    return tuple(reader.documents), tuple(c.problem(file, reader.places) for c in reader.complaints)


def is_manifest(value: Any) -> bool:
    """Whether a document claims to be a Kubernetes object: the rest (values.yaml, workflows) is none of our business."""
    return isinstance(value, Mapping) and bool(value.get("apiVersion")) and bool(value.get("kind"))


class _Reader:
    def __init__(self, text: str, file: str, limits: Limits) -> None:
        self.text = text
        self.file = file
        self.limits = limits
        self.places = Places(text)
        self.documents: list[Document] = []
        self.complaints: list[Complaint] = []
        self._builder = Builder(self.places, limits)
        self._begun = 0  # where the document at hand begins
        self._marked = False
        self._index = 0
        self._broken = 0

    def run(self) -> None:
        text = self.text
        if len(text) > self.limits.json_size:
            self._note(too_large(len(text), self.limits.json_size))
        elif len(text) > SMALL and looks_like_json(text) and self._read_json():
            return
        elif len(text) > self.limits.size:
            self._note(too_large(len(text), self.limits.size))
        else:
            self._read_yaml()
            if self._broken and not (looks_like_json(text) and self._read_json()):  # JSON has escapes libyaml refuses
                self._blame_template()

    def _read_json(self) -> bool:
        """Read the text as JSON; False, with nothing changed, when it is not."""
        text, places, limits = self.text, self.places, self.limits

        def locate(start: int, end: int) -> MapNode | None:
            try:
                if end - start > limits.json_size // 16:
                    return None
                get = _new_parser(text[start:end]).get_event
                get(), get()
                node, _, _ = Builder(places, limits).document(get, start)
            except (Refusal, YAMLError):
                return None
            return node if isinstance(node, MapNode) else None

        try:
            found = read_json(text, places, limits.depth, locate)
        except NotJson:
            return False
        self.documents = [
            Document(index=i, value=value, start=start, end=end, file=self.file, places=places)
            for i, (value, start, end) in enumerate(found)
        ]
        self.complaints = []
        return True

    def _read_yaml(self) -> None:
        text = self.text
        self._marked = "$" in text or "{{" in text
        begin = 1 if text.startswith(_BYTE_ORDER_MARK) else 0
        many = _DIRECTIVES.search(text) if text.count("%") > _MOST_DIRECTIVES else None
        if many:  # libyaml compares each with all before it
            self._note(
                unreadable("more %-directives than anybody needs", "remove the lines that begin with %", many.start())
            )
            return
        bad = next_unprintable(text, begin) if unprintable(text) else len(text)
        while begin < len(text):
            stop = len(text) if bad == len(text) else max(_last_separator(text, begin, bad), begin)
            complaint = self._read_part(begin, stop)
            behind = self._begun + 3  # the separator that begins the broken document is not the next one
            if complaint is None and stop < len(text):
                complaint, behind = forbidden_character(text[bad], bad), bad
            if complaint is None:
                return
            self._note(complaint)
            resume = _SEPARATOR.search(text, behind)
            if complaint.stop or resume is None:
                return
            if self._broken >= self.limits.broken:
                self.complaints.append(gave_up(self._broken, resume.start()))
                return
            begin = resume.start()
            bad = next_unprintable(text, begin) if begin > bad else bad

    def _read_part(self, begin: int, stop: int) -> Complaint | None:
        """Read the documents of ``text[begin:stop]``; None, or what is wrong with the first that cannot be read."""
        self._begun = begin
        try:
            get = _new_parser(self.text[begin:stop]).get_event
            while True:
                event = get()
                kind = event.__class__
                if kind is DocumentStartEvent:
                    self._begun = event.start_mark.index + begin
                    self._read_document(get, begin)
                elif kind is StreamEndEvent:
                    return None
        except Refusal as refusal:
            return refusal.complaint
        except MarkedYAMLError as error:
            return from_yaml_error(error, self.places, begin, self._begun)
        except YAMLError as error:
            return unreadable(f"not YAML: {error}".splitlines()[0], "is this a text file?", self._begun)

    def _read_document(self, get: Callable[[], Any], begin: int) -> None:
        if self._index >= self.limits.documents:
            at = self._begun
            raise Refusal(f"more than {self.limits.documents:,} documents", "split the file", at, at, stop=True)
        value, start, end = self._builder.document(get, begin)
        refused = False
        if is_manifest(value):
            refused = any(c.refused for c in self._builder.complaints)
            if len(self.complaints) < _TOLD or refused:
                self.complaints += self._builder.complaints
            if self._marked:
                refused = self._placeholder(value) or refused
        self.documents.append(
            Document(
                index=self._index,
                value=None if refused else value,
                start=start,
                end=end,
                file=self.file,
                places=self.places,
                rendered_from=helm_source(self.text, self._comments_from(begin), start),
            )
        )
        self._index += 1

    def _comments_from(self, begin: int) -> int:
        """Where the comments above a document begin: at its ``---``, or behind what was read before."""
        if self.text.startswith("---", self._begun):
            return self._begun
        return max(begin, self.documents[-1].end if self.documents else 0)

    def _blame_template(self) -> None:
        """What broke a template is that it is one: one complaint in place of all."""
        unreadable = [c for c in self.complaints if c.kind is ProblemKind.UNREADABLE]
        template = broken_by_template(self.text, [c.start for c in unreadable])
        if template is not None:
            kept = [c for c in self.complaints if c.kind not in (ProblemKind.UNREADABLE, ProblemKind.UNRENDERED)]
            self.complaints = [template, *kept]

    def _placeholder(self, manifest: Mapping[str, Any]) -> bool:
        """Complain of a placeholder in a manifest, once a file; true when the manifest cannot be judged without it."""
        found = placeholder_in(manifest)
        if found is None:
            return False
        if not any(c.kind is ProblemKind.UNRENDERED for c in self.complaints):
            self.complaints.append(unrendered(self.text, found.span.start, found.span.end))
        return found.needed

    def _note(self, complaint: Complaint) -> None:
        self.complaints.append(complaint)
        self._index += 1
        self._broken += 1


def _last_separator(text: str, begin: int, end: int) -> int:
    """Where the last ``---`` line of ``text[begin:end]`` begins, or `begin`."""
    at = text.rfind("\n---", begin, end)
    while at >= 0 and not _SEPARATOR.match(text, at + 1):
        at = text.rfind("\n---", begin, at)
    return at + 1 if at >= 0 else begin


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A large tree makes the collector walk it again and again; nothing here makes cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
