"""
A patch proved on the text itself.

`patch_text` makes the edits and then reads its own result: it must be the intended tree in every node, with the same
comments. Anything else is refused, with the snippet to paste by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from stallscope.errors import PatchRefused
from stallscope.model.source import ListNode, MapNode
from stallscope.remedy import emit
from stallscope.remedy.comments import comments
from stallscope.remedy.edits import apply_edits, edits_between
from stallscope.remedy.ops import AddDocument, AppendItem, Edit, Op, ReplaceScalar, SetKey, apply, same, show_route
from stallscope.remedy.style import is_json, style_of

#: Reads a text into its documents (MapNode and ListNode trees), one entry a document, None for an empty one.
Parse = Callable[[str], Sequence[Any]]

_BOM = "\ufeff"


def patch_text(text: str, ops: Sequence[Op], parse: Parse) -> str:
    """
    `text` with all of `ops` done; the operations must all be about this one file.

    Raises PatchRefused (its hint holds the snippet to paste) when an operation does not fit, would change a shared node
    for somebody else, or when the result could not be proved.
    """
    bom, body = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    edits = [op for op in ops if not isinstance(op, AddDocument)]
    added = [op for op in ops if isinstance(op, AddDocument)]
    try:
        if edits:
            body = _edit(body, edits, parse)
        for op in added:
            body = _append(body, op, parse)
    except PatchRefused as error:
        raise PatchRefused(error.message, hint=error.hint or snippet(ops)) from error
    return bom + body


def _edit(text: str, edits: Sequence[Edit], parse: Parse) -> str:
    documents = list(parse(text))
    intended = list(documents)
    for edit in edits:
        if not 0 <= edit.document < len(documents):
            raise PatchRefused(f"document {edit.document} does not exist")
        intended[edit.document] = apply(intended[edit.document], edit)
    changes = [
        change
        for old, new in zip(documents, intended, strict=True)
        if new is not old
        for change in edits_between(text, old, new, style_of(text, old))
    ]
    result = apply_edits(text, changes)
    prove_text(text, documents, result, intended, parse)
    return result


def prove_text(before: str, documents: Sequence[Any], after: str, intended: Sequence[Any], parse: Parse) -> None:
    """
    Raises PatchRefused unless `after` reads as `intended` and carries the comments of `before`. Documents that were not
    touched (the same object in both) are only compared, not searched.
    """
    try:
        found = list(parse(after))
    except ValueError as error:
        raise PatchRefused("the patched text would not be readable") from error
    if len(found) != len(intended) or not all(map(_reads_as, documents, intended, found)):
        raise PatchRefused("the patched text would not say what was intended")
    if is_json(before):
        if not is_json(after):
            raise PatchRefused("the patched text would no longer be JSON")
        return
    for index, (old, new) in enumerate(zip(documents, intended, strict=True)):
        if old is not new and _comments(before, documents, index) != _comments(after, found, index):
            raise PatchRefused("the patch would touch a comment")


def _reads_as(old: Any, new: Any, found: Any) -> bool:
    return bool(found == new) if old is new else same(found, new)


def _comments(text: str, documents: Sequence[Any], index: int) -> Counter[str]:
    """Comments from the start of a document to the start of the next."""
    following = (d.span.start for d in documents[index + 1 :] if isinstance(d, MapNode | ListNode))
    return comments(text, [documents[index]], documents[index].span.start, next(following, len(text)))


def _append(text: str, op: AddDocument, parse: Parse) -> str:
    if is_json(text):
        raise PatchRefused("a JSON file cannot take another document")
    documents = list(parse(text)) if text.strip() else []
    filled = next((d for d in reversed(documents) if d is not None), None)
    style = style_of(text, filled)
    note = "".join(f"# {line}{style.newline}" for line in op.comment.splitlines())
    body = note + emit.document(op.body, style)
    if not text.strip():
        return text + body
    end = "" if text.endswith("\n") else style.newline
    result = f"{text}{end}---{style.newline}{body}"
    found = [d for d in parse(result) if d is not None]
    if found[:-1] != [d for d in documents if d is not None] or not same(found[-1], op.body):
        raise PatchRefused("the added document would not be read as written")
    return result


def snippet(ops: Sequence[Op]) -> str:
    """The operations as YAML a person can paste, each below the route it belongs to."""
    parts = []
    for op in ops:
        match op:
            case SetKey(route=route, value=value):
                at, lines = route[:-1], emit.mapping_lines({str(route[-1]): value}, 0, emit.Style())
            case AppendItem(route=route, item=item):
                at, lines = route, emit.item_lines(item, 0, emit.Style())
            case ReplaceScalar(route=route, value=value):
                at, lines = route, [emit.scalar(value)]
            case AddDocument(body=body):
                at, lines = (), emit.mapping_lines(body, 0, emit.Style())
        where = f"in {op.file}, a new document" if isinstance(op, AddDocument) else f"in {op.file}, at {show_route(at)}"
        parts.append("\n".join([f"# {where}:", *lines]))
    return "\n".join(parts)
