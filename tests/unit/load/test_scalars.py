"""
What go-yaml v2 makes of plain scalars (resolve.go of sigs.k8s.io/yaml), after the JSON that the API server reads.

Every expectation is read off that source: resolveMapList for the words, strconv.ParseInt with base 0 and the yamlStyleFloat
expression for the numbers, json.Marshal for integral floats.
"""

from __future__ import annotations

from typing import Any

import pytest

from stallscope.load.scalars import as_key, resolve_plain, resolve_tagged
from stallscope.load.stream import parse_stream


@pytest.mark.parametrize("word", ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
def test_words_for_true(word: str) -> None:
    assert resolve_plain(word) is True


@pytest.mark.parametrize("word", ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
def test_words_for_false(word: str) -> None:
    assert resolve_plain(word) is False


@pytest.mark.parametrize("word", ["", "~", "null", "Null", "NULL"])
def test_words_for_null(word: str) -> None:
    assert resolve_plain(word) is None


@pytest.mark.parametrize("word", ["yEs", "tRUE", "oN", "nULL", "None", "nil", "NaN", "inf", "Infinity", "t", "f"])
def test_other_spellings_are_text(word: str) -> None:
    assert resolve_plain(word) == word


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("12", 12),
        ("+12", 12),
        ("-12", -12),
        ("0777", 511),  # base 0: a leading zero is octal
        ("0o777", 511),
        ("-0o17", -15),
        ("08", 8),  # no octal digit: ParseInt fails, the float 8 becomes 8 in JSON
        ("0x1F", 31),
        ("-0X1f", -31),
        ("0b101", 5),
        ("1_000", 1000),
        ("0x_ff", 255),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551615", 2**64 - 1),  # ParseUint
    ],
)
def test_integers(text: str, value: int) -> None:
    assert resolve_plain(text) == value
    assert type(resolve_plain(text)) is int


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", 1.5),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1.", 1),  # integral: JSON writes 1
        ("2.0", 2),
        ("1e3", 1000),
        ("1E-2", 0.01),
        ("6.02e23", 6.02e23),
        ("1_0.5", 10.5),
        ("18446744073709551616", float(2**64)),  # beyond 64 bits: a float
        ("+18446744073709551615", float(2**64)),  # ParseUint takes no sign
    ],
)
def test_floats(text: str, value: float) -> None:
    assert resolve_plain(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "12:30:45",  # no base 60
        "190:20:30.15",
        "2001-12-14",  # timestamps stay text
        "2001-12-14t21:59:43.10-05:00",
        "1.2.3",
        "10.0.0.0/8",
        "1Gi",
        "100m",
        "0x",
        "0o8",
        "0b2",
        "1e",
        "1e999",  # ParseFloat: out of range
        "._5",  # only numbers that begin with a digit or sign lose their underscores
        "-",
        "+",
        ".",
        "--1",
        "\u0661",  # an Arabic-Indic digit is no digit to Go
        "1" * 5000,
    ],
)
def test_text_that_looks_like_numbers(text: str) -> None:
    assert resolve_plain(text) == text


@pytest.mark.parametrize(
    ("value", "key"),
    [("a", "a"), (True, "true"), (False, "false"), (511, "511"), (-1, "-1"), (1.5, "1.5"), (None, None)],
)
def test_keys_become_text(value: Any, key: str | None) -> None:
    assert as_key(value) == key


@pytest.mark.parametrize(
    ("tag", "text", "expected"),
    [
        ("str", "5", (True, "5")),
        ("int", "0x10", (True, 16)),
        ("float", "3", (True, 3)),
        ("bool", "yes", (True, True)),
        ("null", "", (True, None)),
        ("timestamp", "2001-12-14", (True, "2001-12-14")),
        ("int", "many", (False, "many")),
        ("int", "true", (False, "true")),
        ("bool", "1", (False, "1")),
        ("binary", "aGk=", (False, "aGk=")),
        ("python/object/apply:os.system", "id", (False, "id")),
    ],
)
def test_tags(tag: str, text: str, expected: tuple[bool, Any]) -> None:
    assert resolve_tagged("tag:yaml.org,2002:" + tag, text) == expected


def test_in_a_document() -> None:
    """The slip of every newcomer: on and yes are no text, quoted they are; a key `on` is "true"."""
    (document,), problems = parse_stream('on: yes\n"off": "no"\nn: [y, ~, Null, 0777]\n0x10: !!str 5\n')
    assert document.value == {"true": True, "off": "no", "false": [True, None, None, 511], "16": "5"}
    assert problems == ()
