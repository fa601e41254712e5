"""
What the agent refuses inside HTTP and DNS rules and FQDN selectors: regular expressions that do not compile, header
matches without a name, characters a DNS name cannot have.

Source: cilium/cilium pkg/policy/api/http.go, pkg/policy/api/fqdn.go, pkg/fqdn/matchpattern. Kafka topics and API keys are
not checked; of the expressions only the structure is (brackets, parentheses, repetition), not every escape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from stallscope.model.source import Route, as_list, as_map, as_str
from stallscope.policy.go_netip import quoted

_NAME = re.compile(r"[-a-zA-Z0-9_.]+\Z")
_PATTERN = re.compile(r"[-a-zA-Z0-9_.*]+\Z")
_MISMATCHES = frozenset({"", "LOG", "ADD", "DELETE", "REPLACE"})
_LONGEST = 255


def rule_problems(rules: Mapping[str, Any]) -> Iterator[tuple[str, Route]]:
    """What is wrong with the ``http`` and ``dns`` lists of a port rule."""
    for index, item in enumerate(map(as_map, as_list(rules.get("http")))):
        for problem in _http(item):
            yield problem, ("rules", "http", index)
    for index, item in enumerate(map(as_map, as_list(rules.get("dns")))):
        if problem := dns_name_error(item):
            yield problem, ("rules", "dns", index)


def fqdn_error(item: Mapping[str, Any]) -> str:
    """Why a ``toFQDNs`` selector is refused, or the empty string."""
    if as_str(item.get("matchName")) and as_str(item.get("matchPattern")):
        return "only one of MatchName or MatchPattern is allowed in an FQDNSelector"
    return dns_name_error(item)


def dns_name_error(item: Mapping[str, Any]) -> str:
    """Why the names of a DNS rule are refused, or the empty string."""
    name, pattern = as_str(item.get("matchName")), as_str(item.get("matchPattern"))
    if name and not _NAME.match(name):
        return f'Invalid characters in MatchName: "{name}". Only 0-9, a-z, A-Z and . and - characters are allowed'
    if len(pattern.strip()) > _LONGEST:
        return f"Invalid MatchPattern: {quoted(pattern)}. Must be <= {_LONGEST} characters long."
    if pattern and not _PATTERN.match(pattern):
        return f'Invalid characters in MatchPattern: "{pattern}". Only 0-9, a-z, A-Z and ., - and * characters are allowed'
    return ""


def _http(item: Mapping[str, Any]) -> Iterator[str]:
    for name in ("path", "method"):
        if problem := expression_error(as_str(item.get(name))):
            yield f"error parsing regexp: {problem}"
    for match in map(as_map, as_list(item.get("headerMatches"))):
        secret = match.get("secret")
        if not as_str(match.get("name")):
            yield "Header name missing"
        if (mismatch := as_str(match.get("mismatch"))) not in _MISMATCHES:
            yield f"Invalid header action: {mismatch}"
        if isinstance(secret, Mapping) and not as_str(secret.get("name")):
            yield "Secret name missing"


def expression_error(text: str) -> str:
    """Why Go's regexp refuses the structure of `text` (regexp/syntax), or the empty string."""
    depth, index, repeatable = 0, 0, False
    while index < len(text):
        char = text[index]
        if char == "\\":
            if index + 1 == len(text):
                return "trailing backslash at end of expression: ``"
            index, repeatable = index + 2, True
            continue
        if char == "[":
            end = _class_end(text, index)
            if end < 0:
                return f"missing closing ]: `{text[index:]}`"
            index, repeatable = end, True
            continue
        if char in "*+?" and not repeatable:
            return f"missing argument to repetition operator: `{char}`"
        if char == ")" and depth == 0:
            return f"unexpected ): `{text}`"
        depth += (char == "(") - (char == ")")
        repeatable = char not in "(|"
        index += 1
        if char == "(" and text.startswith("?", index):
            index += 1  # flags and group names
    return f"missing closing ): `{text}`" if depth else ""


def _class_end(text: str, start: int) -> int:
    """The place behind a bracket expression, or -1. A ``]`` in the first place is a member."""
    index = start + 1 + text.startswith("^", start + 1)
    first = True
    while index < len(text):
        if text.startswith("[:", index) and ":]" in text[index:]:
            index = text.index(":]", index) + 2
        elif text[index] == "\\":
            index += 2
        elif text[index] == "]" and not first:
            return index + 1
        else:
            index += 1
        first = False
    return -1
