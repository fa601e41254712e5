"""
Calico's selector language: ``role == 'db' && has(zone) || !(env in {'dev', 'ci'})``.

Source: docs.tigera.io/calico, "Selectors" (NetworkPolicy reference, 3.32); libcalico-go lib/selector. `!=` and `not in` also
match when the label is absent; the other comparisons need it. An empty selector is ``all()``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

Labels = Mapping[str, str]

_TOKEN = re.compile(
    r"""\s*(?:(?P<op>&&|\|\||==|!=|!|\(|\)|\{|\}|,)|(?P<text>'[^']*'|"[^"]*")|(?P<word>[A-Za-z0-9_./-]+))""",
)
_MAX_DEPTH = 60


class SelectorSyntaxError(ValueError):
    """The text is not a selector; Calico's API server would refuse the object."""


@dataclass(frozen=True, slots=True)
class Expression:
    """
    A parsed selector. `operator` is one of and, or, not, all, global, has, ==, !=, in, not in, contains, starts, ends;
    `parts` are the operands of and/or/not.
    """

    operator: str
    key: str = ""
    values: tuple[str, ...] = ()
    parts: tuple[Expression, ...] = field(default=())

    def matches(self, labels: Labels) -> bool:
        match self.operator:
            case "all" | "global":
                return True
            case "and":
                return all(p.matches(labels) for p in self.parts)
            case "or":
                return any(p.matches(labels) for p in self.parts)
            case "not":
                return not self.parts[0].matches(labels)
        return _compare(self.operator, labels.get(self.key), self.values)

    @property
    def keys(self) -> frozenset[str]:
        """Every label key the selector looks at."""
        own = frozenset({self.key}) if self.key else frozenset[str]()
        return own.union(*(p.keys for p in self.parts))

    @property
    def is_global(self) -> bool:
        return self.operator == "global"

    @property
    def pinned(self) -> tuple[tuple[str, str], ...]:
        """Label values that any match must have: the ``==`` terms of a conjunction."""
        if self.operator == "==":
            return ((self.key, self.values[0]),)
        return tuple(p for part in self.parts for p in part.pinned) if self.operator == "and" else ()

    def __str__(self) -> str:
        match self.operator:
            case "all" | "global":
                return f"{self.operator}()"
            case "and" | "or":
                return (" && " if self.operator == "and" else " || ").join(
                    f"({p})" if p.parts else str(p) for p in self.parts
                )
            case "not":
                return f"!({self.parts[0]})"
            case "has":
                return f"has({self.key})"
            case "in" | "not in":
                return f"{self.key} {self.operator} {{{', '.join(repr(v) for v in self.values)}}}"
        word = {"starts": "starts with", "ends": "ends with"}.get(self.operator, self.operator)
        return f"{self.key} {word} {self.values[0]!r}"


def _compare(operator: str, value: str | None, wanted: tuple[str, ...]) -> bool:
    match operator:
        case "has":
            return value is not None
        case "!=" | "not in":
            return value is None or value not in wanted
    if value is None:
        return False
    match operator:
        case "==" | "in":
            return value in wanted
        case "contains":
            return wanted[0] in value
        case "starts":
            return value.startswith(wanted[0])
    return value.endswith(wanted[0])


ALL = Expression("all")


def parse(text: str) -> Expression:
    """Parse a selector. Raises SelectorSyntaxError."""
    tokens = _tokens(text)
    if not tokens:
        return ALL
    parser = _Parser(tokens)
    found = parser.disjunction(0)
    if parser.rest:
        raise SelectorSyntaxError(f"unexpected {parser.rest[0][1]!r}")
    return found


def _tokens(text: str) -> list[tuple[str, str]]:
    found, place = [], 0
    stripped = text.rstrip()
    while place < len(stripped):
        match = _TOKEN.match(stripped, place)
        if match is None:
            raise SelectorSyntaxError(f"unexpected {stripped[place : place + 8]!r}")
        kind = str(match.lastgroup)
        value = match.group(kind)
        found.append((kind, value[1:-1] if kind == "text" else value))
        place = match.end()
    return found


class _Parser:
    """Recursive descent: ``||`` binds weaker than ``&&``, ``!`` strongest."""

    __slots__ = ("rest",)

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.rest = tokens

    def _peek(self) -> tuple[str, str]:
        return self.rest[0] if self.rest else ("", "")

    def _take(self, kind: str, value: str = "") -> str:
        found = self._peek()
        if found[0] != kind or (value and found[1] != value):
            raise SelectorSyntaxError(f"expected {value or kind}, found {found[1] or 'the end'!r}")
        self.rest = self.rest[1:]
        return found[1]

    def _chain(self, operator: str, parts: list[Expression]) -> Expression:
        return parts[0] if len(parts) == 1 else Expression(operator, parts=tuple(parts))

    def disjunction(self, depth: int) -> Expression:
        parts = [self._conjunction(depth)]
        while self._peek() == ("op", "||"):
            self._take("op")
            parts.append(self._conjunction(depth))
        return self._chain("or", parts)

    def _conjunction(self, depth: int) -> Expression:
        parts = [self._unary(depth)]
        while self._peek() == ("op", "&&"):
            self._take("op")
            parts.append(self._unary(depth))
        return self._chain("and", parts)

    def _unary(self, depth: int) -> Expression:
        if depth > _MAX_DEPTH:
            raise SelectorSyntaxError("nested too deeply")
        if self._peek() == ("op", "!"):
            self._take("op")
            return Expression("not", parts=(self._unary(depth + 1),))
        if self._peek() == ("op", "("):
            self._take("op")
            inner = self.disjunction(depth + 1)
            self._take("op", ")")
            return inner
        return self._comparison()

    def _comparison(self) -> Expression:
        word = self._take("word")
        if word in ("all", "global", "has") and self._peek() == ("op", "("):
            self._take("op")
            key = self._take("word") if word == "has" else ""
            self._take("op", ")")
            return Expression(word, key)
        kind, operator = self._peek()
        if kind == "op" and operator in ("==", "!="):
            self._take("op")
            return Expression(operator, word, (self._take("text"),))
        return self._worded(word)

    def _worded(self, key: str) -> Expression:
        operator = self._take("word")
        if operator == "contains":
            return Expression("contains", key, (self._take("text"),))
        if operator in ("starts", "ends"):
            self._take("word", "with")
            return Expression(operator, key, (self._take("text"),))
        if operator == "not":
            self._take("word", "in")
            return Expression("not in", key, self._set())
        if operator != "in":
            raise SelectorSyntaxError(f"unknown operator {operator!r}")
        return Expression("in", key, self._set())

    def _set(self) -> tuple[str, ...]:
        self._take("op", "{")
        values: list[str] = []
        while self._peek()[0] == "text":
            values.append(self._take("text"))
            if self._peek() != ("op", ","):
                break
            self._take("op", ",")
        self._take("op", "}")
        return tuple(values)
