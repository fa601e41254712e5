"""
YAML events of one document to a tree of `MapNode` and `ListNode`.

Written for speed (this loop is most of the time `check` spends on large inputs) and for hostile input: it never recurses,
counts what aliases would expand to, and makes nothing but text, numbers, booleans, lists and mappings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from yaml.events import AliasEvent, MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent

from stallscope.judge.inputs import ProblemKind
from stallscope.load.complaints import Complaint, Refusal
from stallscope.load.limits import Limits
from stallscope.load.scalars import CONSTANTS, NOT_IN_JSON, TAG_TYPES, as_key, resolve_plain, resolve_tagged
from stallscope.model.places import Places
from stallscope.model.source import ListNode, MapNode

_MERGE = "".join(("<", "<"))  # an object of its own: only the merge key `is` it
_COLLECTION_TAGS = frozenset({None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_LINE_BREAK = re.compile(r"[\r\n]")
_COMPLAINTS = 50  # complaints kept of one document
_WRONG_FILE = "no Kubernetes object is like that; is this the right file?"
Four = tuple[int, int, int, int]
Anchors = dict[str, tuple[Any, int]]


class Builder:
    """Builds the documents of one text. `complaints` are those of the document built last; `built` counts all nodes."""

    def __init__(self, places: Places, limits: Limits) -> None:
        self.places = places
        self.complaints: list[Complaint] = []
        self.built = 0
        self._limits = limits
        self._plain: dict[str, Any] = dict(CONSTANTS)
        self._keys: dict[str, str] = {"<<": _MERGE}

    def document(self, get: Callable[[], Any], shift: int) -> tuple[Any, int, int]:
        """
        The value, start and end of a document. `get` gives the events behind its start event; `shift` turns the
        parser's offsets into the text's. Raises Refusal, and whatever `get` raises on text that is not YAML.
        """
        self.complaints = []
        places, limits, plain, keys = self.places, self._limits, self._plain, self._keys
        offsets = places.offsets
        nodes_allowed = limits.nodes
        anchors: Anchors = {}
        stack: list[Any] = []
        # The open collection: its node, where it starts, the offsets of its parts, and how it was anchored.
        # A document is the only item of an invisible list.
        node: Any = []
        marks: list[int] = []
        special: dict[str, Four] | None = None  # the offsets by key, once a key was given twice or merged in
        is_map, start, anchor, opened = False, 0, None, 0
        key, key_start, key_end, count, end = "", 0, 0, 0, 0
        while True:
            event = get()
            kind = event.__class__
            if is_map and kind is not MappingEndEvent:
                key_start, key_end = event.start_mark.index + shift, event.end_mark.index + shift
                if kind is ScalarEvent and event.implicit[0]:
                    try:
                        key = keys[event.value]
                    except KeyError:
                        key = keys[event.value] = self._plain_key(event.value, key_start, key_end)
                else:
                    key = self._other_key(event, anchors, key_start, key_end)
                event = get()
                kind = event.__class__

            if kind is ScalarEvent:
                value_start, end = event.start_mark.index + shift, event.end_mark.index + shift
                value = event.value
                if event.implicit[0]:
                    try:
                        value = plain[value]
                    except KeyError:
                        value = self._plain_value(value, value_start, end)
                else:
                    value, end = self._other_value(event, value_start, end)
                if event.anchor is not None:
                    anchors[event.anchor] = (value, 1)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                if node.flow:  # libyaml ends a block collection at the next token; its last child knows better
                    end = event.end_mark.index + shift
                if special is not None:
                    marks = list(chain.from_iterable(special[k] for k in node))
                node.put(places, start, end, len(offsets))
                offsets.fromlist(marks)
                value, value_start = node, start
                if anchor is not None:
                    value.shared = True
                    anchors[anchor] = (value, count - opened + 1)
                node, is_map, start, marks, special, anchor, opened, key, key_start, key_end = stack.pop()
            elif kind is AliasEvent:
                value_start, end = event.start_mark.index + shift, event.end_mark.index + shift
                value, size = _aliased(event.anchor, anchors, value_start, end)
                count += size
            else:
                stack.append((node, is_map, start, marks, special, anchor, opened, key, key_start, key_end))
                start, anchor, marks, special, opened = event.start_mark.index + shift, event.anchor, [], None, count
                is_map = kind is MappingStartEvent
                node = MapNode(flow=event.flow_style) if is_map else ListNode(flow=event.flow_style)
                if len(stack) > limits.depth or event.tag not in _COLLECTION_TAGS:
                    self._check_opening(event, len(stack), start)
                continue

            count += 1
            if count > nodes_allowed:
                raise Refusal(f"more than {nodes_allowed:,} values once aliases are expanded", _WRONG_FILE, value_start, end)
            if not is_map:
                node.append(value)
                marks += (value_start, end)
                if not stack:
                    break
            elif key is _MERGE:
                special = _positions(node, marks) if special is None else special
                self._merge(node, value, special, (key_start, key_end, value_start, end))
            else:
                if key in node:
                    special = _positions(node, marks) if special is None else special
                    self._repeat(node, key, special[key], key_start, key_end)
                node[key] = value
                if special is None:
                    marks += (key_start, key_end, value_start, end)
                else:
                    special[key] = (key_start, key_end, value_start, end)
        self.built += count
        get()  # the document's end
        return node[0], marks[0], marks[1]

    def _plain_key(self, text: str, start: int, end: int) -> str:
        key = as_key(resolve_plain(text))
        if key is None:
            message, hint = "a key is null; Kubernetes refuses null keys", 'quote the key ("null") or remove the line'
            self._complain(ProblemKind.INVALID, message, hint, start, end, refused=True)
        return key or ""

    def _other_key(self, event: Any, anchors: Anchors, start: int, end: int) -> str:
        """A key that is quoted, tagged or an alias. Raises Refusal when it is a list or a mapping."""
        value: Any = ()
        if event.__class__ is ScalarEvent:
            value, _ = self._other_value(event, start, end)
            if event.anchor is not None:
                anchors[event.anchor] = (value, 1)
        elif event.__class__ is AliasEvent:
            value, _ = _aliased(event.anchor, anchors, start, end)
        if isinstance(value, dict | list | tuple):
            message = "not a manifest: a list or mapping stands where a key belongs"
            raise Refusal(message, "quote it if it is text that starts with { or [", start, end)
        key = as_key(value)
        return self._plain_key("null", start, end) if key is None else key

    def _plain_value(self, text: str, start: int, end: int) -> Any:
        """A plain scalar not met before in this text."""
        self._check_length(text, start, end)
        if text in NOT_IN_JSON:
            message = f"{text} is a number that JSON does not have; the API server refuses the object"
            self._complain(ProblemKind.INVALID, message, "write a finite number, or quote it if text is meant", start, end)
            return text
        value = self._plain[text] = resolve_plain(text)
        return value

    def _other_value(self, event: Any, start: int, end: int) -> tuple[Any, int]:
        """A scalar that is quoted, in block style or tagged, and where it really ends."""
        text = event.value
        self._check_length(text, start, end)
        if event.style in ("|", ">"):
            end = _block_end(self.places.text, text, start, end)
        if event.tag is None or event.tag == "!":
            return text, end
        known, value = resolve_tagged(event.tag, text)
        if not known:
            self._refuse_tag(event.tag, text, start, end)
        return value, end

    def _check_opening(self, event: Any, depth: int, start: int) -> None:
        if depth > self._limits.depth:
            raise Refusal(f"nested deeper than {self._limits.depth} levels", _WRONG_FILE, start, start + 1)
        if event.tag not in _COLLECTION_TAGS:
            self._refuse_tag(event.tag, "", start, start + 1)

    def _check_length(self, text: str, start: int, end: int) -> None:
        if len(text) > self._limits.scalar:
            raise Refusal(f"a value of {len(text):,} characters is too long", _WRONG_FILE, start, end)

    def _refuse_tag(self, tag: str, text: str, start: int, end: int) -> None:
        shown = tag.replace("tag:yaml.org,2002:", "!!", 1)[:80]
        message = f"{text[:40]!r} is no {shown}" if tag in TAG_TYPES else f"the tag {shown} has no place in a manifest"
        self._complain(ProblemKind.UNREADABLE, message, "remove the tag", start, end, refused=True)

    def _complain(self, kind: ProblemKind, message: str, hint: str, start: int, end: int, *, refused: bool = False) -> None:
        if len(self.complaints) < _COMPLAINTS:
            complaint = Complaint(kind=kind, message=message, hint=hint, start=start, end=end, refused=refused)
            self.complaints.append(complaint)

    def _repeat(self, node: MapNode, key: str, first: Four, start: int, end: int) -> None:
        """A key that the mapping already has: fine when a merge key brought it, else the last one wins (as in Go)."""
        if isinstance(node.merged, set) and key in node.merged:
            node.merged.discard(key)
            return
        line, _ = self.places.position(first[0])
        message = f"the key {key!r} is given twice, first at line {line}; the last one counts"
        self._complain(ProblemKind.DUPLICATE_KEY, message, "remove one of them", start, end)

    def _merge(self, node: MapNode, value: Any, special: dict[str, Four], where: Four) -> None:
        """
        Apply a merge key. go-yaml v2 applies it where it stands (decode.go, `merge`): it overrides keys above it and is
        overridden by keys below; of a list of mappings the first wins.
        """
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(s, MapNode) for s in sources):
            raise Refusal("a merge key (<<) takes a mapping or a list of mappings", "check the alias", where[2], where[3])
        merged = node.merged if isinstance(node.merged, set) else set()
        node.merged = merged
        for source in reversed(sources):
            positions = _positions(source, source.marks)
            for key, item in source.items():
                node[key] = item
                special[key] = positions[key]
                if isinstance(item, MapNode | ListNode):
                    item.shared = True
            merged.update(source)


def _positions(node: MapNode, marks: Sequence[int]) -> dict[str, Four]:
    """Per key the four offsets that stand flat in `marks`."""
    quads = zip(marks[0::4], marks[1::4], marks[2::4], marks[3::4], strict=True)
    return dict(zip(node, quads, strict=True))


def _aliased(name: Any, anchors: Anchors, start: int, end: int) -> tuple[Any, int]:
    if name in anchors:
        return anchors[name]
    message = f"the alias *{name[:80]} has no anchor above it, or contains itself"
    raise Refusal(message, f"define &{name[:80]} above it", start, end)


def _block_end(text: str, value: str, start: int, end: int) -> int:
    """
    Where the content of a block scalar ends: behind its last line, before the line break. The parser's end is behind all
    blank lines below it; they belong to the value only when it keeps them (``|+``) or when the last line is blank.
    """
    block = text[start:end]
    content = value.rstrip("\n")
    last_line = content.rpartition("\n")[2]
    if value.endswith("\n\n") or (value and not content) or (last_line and not last_line.strip()):
        body = block.rstrip(" ")
        return start + len(body.removesuffix("\n").removesuffix("\r"))
    length = len(block.rstrip())
    line_end = _LINE_BREAK.search(block, length)
    return start + (line_end.start() if line_end else len(block))
