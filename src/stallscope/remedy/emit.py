"""
Small values as YAML or JSON text.

Only what a fix adds is ever written by this module; existing text is never re-serialised. Plain scalars are used where
every YAML 1.1 and 1.2 reader agrees that they are strings, double quotes elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Starts with a letter or slash, so it is no number, date, indicator or merge key; has nothing special in a flow.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*\Z")
#: The same with inner colons (``k8s:app``, ``image:tag``), which some readers trip over inside a flow.
_PLAIN_BLOCK = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*(?::[A-Za-z_./-][A-Za-z0-9_./-]*)*\Z")
#: YAML 1.1 words that are not strings (yaml.org/type/bool.html, null.html).
_RESERVED = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """
    How a document is written: `step` columns a level, `dash` columns from a key to the dash of its list (0 or `step`),
    `newline`, whether it is JSON, and for JSON whether it has no spaces (`compact`) or several lines.
    """

    step: int = 2
    dash: int = 0
    newline: str = "\n"
    json: bool = False
    compact: bool = False
    multiline: bool = False


def scalar(value: Any, *, as_json: bool = False, block: bool = False) -> str:
    """One scalar; `block`: it stands outside any flow. Raises TypeError for anything that JSON has no scalar for."""
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if not isinstance(value, str):
        raise TypeError(f"no scalar: {type(value).__name__}")
    plain = _PLAIN_BLOCK if block else _PLAIN
    if not as_json and plain.match(value) and value.lower() not in _RESERVED:
        return value
    return quoted(value)


def quoted(value: str) -> str:
    """A double-quoted string that YAML and JSON read alike; characters YAML calls unprintable are escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if _printable(c) else _escape(c) for c in text)


def _printable(char: str) -> bool:
    """YAML 1.2 production c-printable, without the breaks that YAML 1.1 alone knows (NEL, LS, PS) and the BOM."""
    code = ord(char)
    if code in (0x2028, 0x2029, 0xFEFF):
        return False
    return 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD


def _escape(char: str) -> str:
    """JSON's escape; YAML has no surrogate pairs, so characters above the BMP stay as they are."""
    return char if ord(char) > 0xFFFF else f"\\u{ord(char):04x}"


def flow(value: Any, style: Style) -> str:
    """A value on one line: ``{key: nvidia.com/gpu, operator: Exists}``."""
    comma, colon = (",", ":") if style.compact else (", ", ": ")
    if isinstance(value, Mapping):
        inner = comma.join(f"{scalar(k, as_json=style.json)}{colon}{flow(v, style)}" for k, v in value.items())
        return f"{{{inner}}}"
    if _is_list(value):
        return f"[{comma.join(flow(v, style) for v in value)}]"
    return scalar(value, as_json=style.json)


def pretty_json(value: Any, column: int, style: Style) -> str:
    """JSON over several lines whose first line continues at `column`; later lines carry their indent."""
    if isinstance(value, Mapping) and value:
        body = [f"{quoted(str(k))}: {pretty_json(v, column + style.step, style)}" for k, v in value.items()]
        return _bracket("{}", body, column, style)
    if _is_list(value) and value:
        return _bracket("[]", [pretty_json(v, column + style.step, style) for v in value], column, style)
    return flow(value, style)


def _bracket(pair: str, body: Sequence[str], column: int, style: Style) -> str:
    inner, outer = style.newline + " " * (column + style.step), style.newline + " " * column
    return pair[0] + inner + ("," + inner).join(body) + outer + pair[1]


def mapping_lines(value: Mapping[str, Any], column: int, style: Style) -> list[str]:
    """A block mapping whose keys stand at `column` (0-based), one string a line, without newlines."""
    return [line for k, v in value.items() for line in entry_lines(k, v, column, style)]


def entry_lines(key: str, value: Any, column: int, style: Style) -> list[str]:
    """One ``key: value`` of a block mapping."""
    head = " " * column + scalar(key, block=True) + ":"
    if isinstance(value, Mapping) and value:
        return [head, *mapping_lines(value, column + style.step, style)]
    if _is_list(value) and value:
        return [head, *(line for item in value for line in item_lines(item, column + style.dash, style))]
    return [f"{head} {_inline(value, style)}"]


def item_lines(item: Any, column: int, style: Style) -> list[str]:
    """One ``- item`` of a block sequence whose dashes stand at `column`."""
    dash = " " * column + "- "
    if isinstance(item, Mapping) and item:
        lines = mapping_lines(item, column + 2, style)
    elif _is_list(item) and item:
        lines = [line for inner in item for line in item_lines(inner, column + 2, style)]
    else:
        return [dash + _inline(item, style)]
    return [dash + lines[0][column + 2 :], *lines[1:]]


def document(body: Mapping[str, Any], style: Style) -> str:
    """A whole document in block style, with a final newline."""
    return style.newline.join([*mapping_lines(body, 0, style), ""])


def _inline(value: Any, style: Style) -> str:
    return flow(value, style) if isinstance(value, Mapping) or _is_list(value) else scalar(value, block=True)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
