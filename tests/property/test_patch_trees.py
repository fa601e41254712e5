"""
Random trees, written in random but legal ways, and random additions: the patched text must read as intended, keep every
comment, and lose no line.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from stallscope.errors import PatchRefused
from stallscope.load.stream import parse_stream
from stallscope.remedy.ops import AppendItem, SetKey, apply, same
from stallscope.remedy.patch import patch_text

KEYS = st.sampled_from(["alpha", "beta", "gamma", "x/z.io", "k-1", "delta", "on", "12"])
SCALARS = st.one_of(
    st.sampled_from(["a", "two words", "# hash", "a: b", "yes", "", "it's", 'say "x"', "line\nbreak", "é", "- dash", "{"]),
    st.integers(-5, 5),
    st.booleans(),
    st.none(),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
ROOTS = st.dictionaries(KEYS, TREES, min_size=1, max_size=4)


class Scribe:
    """Writes a tree as a careless person would; every choice is drawn."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.step = data.draw(st.sampled_from([2, 3, 4]))
        self.dash = data.draw(st.sampled_from([0, 2]))
        self.lines: list[str] = []
        self.notes = 0

    def chance(self, one_in: int) -> bool:
        return self.data.draw(st.integers(0, one_in - 1)) == 0

    def note(self) -> str:
        self.notes += 1
        return f"# note {self.notes}"

    def tail(self) -> str:
        return f"  {self.note()}" if self.chance(5) else ""

    def above(self, column: int) -> None:
        if self.chance(6):
            self.lines.append(" " * column + self.note())
        if self.chance(8):
            self.lines.append("")

    def scalar(self, value: Any) -> str:
        if value is None:
            return self.data.draw(st.sampled_from(["null", "~"]))
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value)
        if "\n" in value or "'" in value or self.chance(2):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        return f"'{value}'"

    def key(self, key: str) -> str:
        return f'"{key}"' if key in ("on", "12") or self.chance(4) else key

    def flow(self, value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.key(k)}: {self.flow(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.flow, value)) + "]"
        return self.scalar(value)

    def block(self, value: Any, column: int, lead: str) -> None:
        """`lead` is what already stands on the line: a key with its colon, or a dash."""
        if not value or not isinstance(value, dict | list) or self.chance(6):
            empty = value is None and self.chance(2)
            self.lines.append(f"{lead.rstrip() if empty else lead + self.flow(value)}{self.tail()}")
            return
        if isinstance(value, dict):
            self.mapping(value, column, lead)
        else:
            self.sequence(value, column, lead)

    def mapping(self, value: dict[str, Any], column: int, lead: str) -> None:
        compact = lead.endswith("- ")
        if lead and not compact:
            self.lines.append(lead.rstrip() + self.tail())
        for i, (key, item) in enumerate(value.items()):
            if not (compact and i == 0):
                self.above(column)
            head = lead if compact and i == 0 else " " * column
            inner = column + (self.dash if isinstance(item, list) else self.step)
            self.block(item, inner, f"{head}{self.key(key)}: ")

    def sequence(self, value: list[Any], column: int, lead: str) -> None:
        compact = lead.endswith("- ")
        if lead and not compact:
            self.lines.append(lead.rstrip() + self.tail())
        for i, item in enumerate(value):
            if not (compact and i == 0):
                self.above(column)
            head = lead if compact and i == 0 else " " * column
            self.block(item, column + 2, f"{head}- ")

    def text(self, root: dict[str, Any]) -> str:
        self.mapping(root, 0, "")
        if self.chance(4):
            self.lines.append(self.note())
        newline = "\r\n" if self.chance(4) else "\n"
        end = "" if self.chance(4) else newline
        return ("\ufeff" if self.chance(8) else "") + newline.join(self.lines) + end


def parse(text: str) -> list[Any]:
    documents, _ = parse_stream(text)
    return [d.value for d in documents]


def places(tree: Any, route: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    found = [(route, tree)]
    if isinstance(tree, dict):
        found += [p for k, v in tree.items() for p in places(v, (*route, k))]
    elif isinstance(tree, list):
        found += [p for i, v in enumerate(tree) for p in places(v, (*route, i))]
    return found


def draw_op(data: st.DataObject, tree: Any) -> SetKey | AppendItem:
    route, value = data.draw(st.sampled_from([p for p in places(tree) if isinstance(p[1], dict | list) or p[1] is None]))
    added = data.draw(TREES)
    if isinstance(value, list):
        return AppendItem(file="f", document=0, route=route, item=added)
    key = data.draw(st.sampled_from(["new-1", "new.io/2", "new 3"]))
    deeper = data.draw(st.sampled_from([(), ("inner",), ("inner", "most")]))
    first = key if data.draw(st.booleans()) else ""
    return SetKey(file="f", document=0, route=(*route, key, *deeper), value=added, first=first)


def inside_flow_or_empty(tree: Any, op: SetKey | AppendItem) -> bool:
    """The edit has to rewrite a line: into a flow collection, or for an empty or null value."""
    node = tree
    for step in op.route:
        if getattr(node, "flow", False) or not isinstance(node, dict | list) or not node:
            return True
        if step not in node if isinstance(node, dict) else step >= len(node):
            return False  # an earlier operation made it, as lines of their own
        node = node[step]
    return getattr(node, "flow", False) or not isinstance(node, dict | list) or not node


@given(st.data(), ROOTS)
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_a_patched_text_reads_as_intended(data: st.DataObject, root: dict[str, Any]) -> None:
    text = Scribe(data).text(root)
    [before] = parse(text)
    assume(same(before, root))
    ops, intended, rewrites = [], before, False
    for _ in range(data.draw(st.integers(1, 4))):
        op = draw_op(data, intended)
        rewrites |= inside_flow_or_empty(before, op)
        try:
            intended = apply(intended, op)
        except PatchRefused:
            continue
        ops.append(op)
    assume(ops)
    after = patch_text(text, ops, parse)
    [found] = parse(after)
    event("rewrites a line" if rewrites else "adds lines only")
    assert same(found, intended)
    assert after.count("# note") == text.count("# note")
    if not rewrites:
        assert lost_lines(text, after) == []


def lost_lines(before: str, after: str) -> list[str]:
    """Lines of `before` that do not occur in `after`, in order; the last one may have got its line end."""
    rest = iter(after.lstrip("\ufeff").splitlines())
    return [line for line in before.lstrip("\ufeff").splitlines() if line not in rest]
