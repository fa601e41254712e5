"""
YAML text to documents whose every key, value and item knows its place.

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

from stallscope.judge.inputs import Problem
from stallscope.load.builder import Builder
from stallscope.load.complaints import Complaint, Refusal, from_yaml_error, unreadable
from stallscope.load.limits import Limits
from stallscope.load.templates import helm_source
from stallscope.model.source import Location, Places

try:
    from yaml._yaml import CParser
except ImportError:  # PyYAML without libyaml: thirty times slower, the same events
    _new_parser: Callable[[str], Any] = yaml.Loader
else:
    _new_parser = CParser

_SEPARATOR = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_BYTE_ORDER_MARK = "\ufeff"


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
        self._index = 0
        self._broken = 0

    def run(self) -> None:
        begin = 1 if self.text.startswith(_BYTE_ORDER_MARK) else 0
        while begin < len(self.text):
            complaint = self._read_from(begin)
            if complaint is None:
                return
            self.complaints.append(complaint)
            self._index += 1
            self._broken += 1
            resume = _SEPARATOR.search(self.text, self._document_begin + 3)
            if complaint.stop or resume is None:
                return
            if self._broken >= self.limits.broken:
                self.complaints.append(_gave_up(self._broken, resume.start()))
                return
            begin = resume.start()

    def _read_from(self, begin: int) -> Complaint | None:
        """Read documents from `begin` until the end (None) or until one cannot be read."""
        self._document_begin = begin
        try:
            get = _new_parser(self.text[begin:] if begin else self.text).get_event
            while True:
                event = get()
                kind = event.__class__
                if kind is DocumentStartEvent:
                    self._document_begin = event.start_mark.index + begin
                    self._one(get, begin)
                elif kind is StreamEndEvent:
                    return None
        except Refusal as refusal:
            return refusal.complaint
        except MarkedYAMLError as error:
            return from_yaml_error(error, self.text, begin, self._document_begin)
        except YAMLError as error:
            return unreadable(f"not YAML: {error}".splitlines()[0], "is this a text file?", self._document_begin)

    def _one(self, get: Callable[[], Any], begin: int) -> None:
        if self._index >= self.limits.documents:
            at = self._document_begin
            raise Refusal(f"more than {self.limits.documents:,} documents", "split the file", at, at, stop=True)
        value, start, end = self._builder.document(get, begin)
        refused = False
        if self._builder.complaints and is_manifest(value):
            self.complaints += self._builder.complaints
            refused = any(c.refused for c in self._builder.complaints)
        self.documents.append(
            Document(
                index=self._index,
                value=None if refused else value,
                start=start,
                end=end,
                file=self.file,
                places=self.places,
                rendered_from=helm_source(self.text, self._document_begin, start),
            )
        )
        self._index += 1


def _gave_up(broken: int, at: int) -> Complaint:
    return unreadable(f"{broken} documents of this file are unreadable; the rest is not read", "repair those first", at)


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
