"""Calico's selector language: the table of docs.tigera.io (NetworkPolicy reference, Selectors)."""

from __future__ import annotations

import pytest

from stallscope.policy.calico_selectors import SelectorSyntaxError, parse

LABELS = {"role": "db", "env": "prod", "zone": "eu-a", "app.kubernetes.io/name": "x"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("all()", True),
        ("role == 'db'", True),
        ('role == "db"', True),
        ("role != 'db'", False),
        ("absent != 'x'", True),
        ("has(role)", True),
        ("!has(role)", False),
        ("!has(absent)", True),
        ("role in {'db', 'web'}", True),
        ("role not in {'db'}", False),
        ("absent not in {'db'}", True),
        ("absent in {'db'}", False),
        ("zone contains 'u-'", True),
        ("zone starts with 'eu'", True),
        ("zone ends with 'eu'", False),
        ("absent contains 'x'", False),
        ("role == 'db' && env == 'prod'", True),
        ("role == 'db' && env == 'dev'", False),
        ("role == 'web' || env == 'prod'", True),
        ("role == 'web' && env == 'dev' || has(zone)", True),
        ("role == 'web' && (env == 'dev' || has(zone))", False),
        ("!(role == 'db')", False),
        ("!(role == 'db' && env == 'dev')", True),
        ("app.kubernetes.io/name == 'x'", True),
        ("role in {}", False),
    ],
)
def test_matches(text: str, matches: bool) -> None:
    assert parse(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    "text",
    [
        "role = 'db'",
        "role ==",
        "role == db",
        "(role == 'db'",
        "role == 'db' &&",
        "&& x",
        "role like 'x'",
        "a b",
        "has()",
        "'x'",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(SelectorSyntaxError):
        parse(text)


def test_nesting_is_bounded() -> None:
    with pytest.raises(SelectorSyntaxError):
        parse("(" * 500 + "all()" + ")" * 500)


def test_what_a_match_must_carry() -> None:
    assert parse("a == 'x' && b == 'y' && has(c)").pinned == (("a", "x"), ("b", "y"))
    assert parse("a == 'x' || b == 'y'").pinned == ()
    assert parse("a == 'x' && !has(b)").keys == {"a", "b"}


@pytest.mark.parametrize(
    "text", ["role == 'db' && (has(a) || !(zone in {'x'}))", "a starts with 'b'", "all()", "a not in {'x', 'y'}"]
)
def test_shown_form_parses_to_the_same(text: str) -> None:
    assert parse(str(parse(text))) == parse(text)
