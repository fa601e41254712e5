"""
What users wrote to accept findings: ``# stallscope: ignore[STL203] reason`` beside or above a line,
``# stallscope: ignore-file[STL203] reason`` anywhere in a file, and the annotation ``stallscope.dev/ignore``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from stallscope.findings import SuppressedBy
from stallscope.model.kube import KubeObject
from stallscope.model.source import ListNode, Location, MapNode, Route, Span

ANNOTATION = "stallscope.dev/ignore"
MARK = re.compile(
    r"(?:^|(?<=\s))\#[ \t]*stallscope:[ \t]*(?P<word>ignore(?:-[\w-]+)?)\b[ \t]*"
    r"(?:\[(?P<rules>[^\]\r\n]*)\])?[ \t]*(?P<reason>[^\r\n]*)",
    re.MULTILINE,
)
_BREAK = re.compile(r"\r\n|\n|\r")
_MARKER = re.compile(r"(---|\.\.\.)(\s|\Z)")


class Directive(NamedTuple):
    """
    One accepted rule. It covers findings with any label on lines `first` to `last` of `file` (0: the whole file), and
    those about `subject`. `wrong` says why it cannot work; such a directive covers nothing.
    """

    rule: str
    reason: str
    by: SuppressedBy
    location: Location
    first: int = 0
    last: int = 0
    subject: str = ""
    wrong: str = ""


def in_comments(text: str, file: str, objects: Iterable[KubeObject]) -> list[Directive]:
    """The directives in the comments of a file. `objects` are those of the file: a ``#`` inside their text is no comment."""
    found = list(MARK.finditer(text)) if "stallscope:" in text else []
    if not found:
        return []
    trees = [o.body for o in objects]
    starts = [0, *(m.end() for m in _BREAK.finditer(text))]
    lines = _BREAK.split(text)
    return [
        directive
        for match in found
        if not any(_inside_text(tree, match.start()) for tree in trees)
        for directive in _from_comment(match, file, lines, starts)
    ]


def _from_comment(match: re.Match[str], file: str, lines: list[str], starts: list[int]) -> Iterator[Directive]:
    index = next(i for i in range(len(starts) - 1, -1, -1) if starts[i] <= match.start())
    column = match.start() - starts[index] + 1
    end = column + len(match.group().rstrip())
    place = Location(file=file, span=Span(index + 1, column, index + 1, end, match.start(), match.end()))
    common: dict[str, Any] = {"by": SuppressedBy.COMMENT, "location": place, "reason": match["reason"].strip()}
    rules = split_rules(match["rules"] or "")
    if match["word"] not in ("ignore", "ignore-file"):
        yield Directive(rule="", wrong=f"`{match['word']}` is no directive; use `ignore` or `ignore-file`", **common)
    elif not rules:
        yield Directive(rule="", wrong=f"it names no rule; write `{match['word']}[STL203] reason`", **common)
    else:
        first, last = (0, 0) if match["word"] == "ignore-file" else covered(lines, index)
        for rule in rules:
            yield Directive(rule=rule, first=first, last=last, **common)


def split_rules(text: str) -> list[str]:
    """Rule ids or slugs from a comma-separated list; ids in capitals."""
    return [r.upper() if r.upper().startswith("STL") else r for part in text.split(",") if (r := part.strip())]


def covered(lines: list[str], index: int) -> tuple[int, int]:
    """
    First and last line, 1-based, that a comment on line `index` (0-based) covers: the node that begins on that line, or
    on the next line with content when the comment stands alone. At the first line of a document: the whole document.
    """
    alone = _bare(lines[index]) == ""
    target = index
    if alone:
        target = next((i for i in range(index + 1, len(lines)) if _bare(lines[i]) and not _MARKER.match(lines[i])), -1)
        if target < 0:
            return index + 1, index + 1
    opens_document = all(not _bare(x) for x in _back_to_marker(lines, target))
    end = target
    for position in range(target + 1, len(lines)):
        if _MARKER.match(lines[position]):
            break
        if _bare(lines[position]):
            if not (opens_document or _belongs(lines[target], lines[position])):
                break
            end = position
    return min(index, target) + 1, end + 1


def _back_to_marker(lines: list[str], target: int) -> Iterator[str]:
    for position in range(target - 1, -1, -1):
        if _MARKER.match(lines[position]):
            return
        yield lines[position]


def _bare(line: str) -> str:
    """The line without indentation; empty for blank lines and comments."""
    text = line.strip()
    return "" if text.startswith("#") else text


def _belongs(head: str, line: str) -> bool:
    """Whether `line` is part of the node that begins at `head`: deeper, or items of a key's list at the same depth."""
    depth, other = (len(x) - len(x.lstrip()) for x in (head, line))
    if other > depth:
        return True
    return other == depth and line.lstrip().startswith("- ") and not head.lstrip().startswith("- ")


def _inside_text(node: Any, offset: int) -> bool:
    """Whether a character offset lies in a scalar of the tree (a script in a ConfigMap, a JSON string)."""
    spans: Iterable[tuple[Any, Span]]
    if isinstance(node, MapNode):
        spans = [(node[k], s) for k, s in node.value_spans.items() if k in node]
    elif isinstance(node, ListNode):
        spans = list(zip(node, node.item_spans, strict=False))
    else:
        return False
    for value, span in spans:
        if span.start <= offset < span.end:
            return _inside_text(value, offset) if isinstance(value, MapNode | ListNode) else True
    return False


def in_annotations(objects: Iterable[KubeObject]) -> list[Directive]:
    """The directives in annotations, on objects and on the pod templates in them: both cover the whole object."""
    return [d for obj in objects for route, text in _annotations(obj.body, ()) for d in _from_annotation(obj, route, text)]


def _annotations(node: Any, route: Route) -> Iterator[tuple[Route, Any]]:
    if len(route) > 40:
        return
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key == ANNOTATION and route[-1:] == ("annotations",):
                yield (*route, key), value
            elif isinstance(value, Mapping | list):
                yield from _annotations(value, (*route, str(key)))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            if isinstance(value, Mapping | list):
                yield from _annotations(value, (*route, index))


def _from_annotation(obj: KubeObject, route: Route, text: Any) -> Iterator[Directive]:
    span = obj.at().span
    last = max(span.line, span.end_line - (1 if span.end_column == 1 else 0))
    common: dict[str, Any] = {"by": SuppressedBy.ANNOTATION, "location": obj.at(*route), "subject": obj.ref}
    if span.line:
        common |= {"first": span.line, "last": last}
    entries = [e.strip() for e in re.split(r"[;\n]", text) if e.strip()] if isinstance(text, str) else []
    for entry in entries:
        names, _, reason = entry.partition("=")
        for rule in split_rules(names):
            yield Directive(rule=rule, reason=reason.strip(), **common)
    if not entries:
        yield Directive(rule="", reason="", wrong='it names no rule; write "STL203=reason; STL101=reason"', **common)
