"""
What the agent refuses in a LabelSelector: EndpointSelector.Sanitize runs the API machinery's validation over keys that
already carry their source (``app`` is checked as ``any.app``).

Source: cilium/cilium pkg/policy/api/selector.go, pkg/k8s/slim/k8s/apis/meta/v1/validation; k8s.io/apimachinery
pkg/util/validation (IsQualifiedName, IsValidLabelValue).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from stallscope.model.labels import LABEL_OPERATORS
from stallscope.model.source import as_list, as_map
from stallscope.policy.cilium_selectors import split_key
from stallscope.policy.go_netip import quoted

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_CHARACTERS = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_NAME_HELP = (
    f"must consist of {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_HELP = (
    f"a valid label must be an empty string or consist of {_CHARACTERS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({_NAME})?')"
)
_SUBDOMAIN_HELP = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    f"with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_TOO_LONG = "must be no more than {} bytes"


def selector_error(value: Any) -> str:
    """Why the agent refuses this selector, or the empty string."""
    found = list(dict.fromkeys(_problems(value)))
    if not found:
        return ""
    return "invalid label selector: " + (found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _problems(value: Any) -> Iterator[str]:
    body = as_map(value)
    for key, wanted in as_map(body.get("matchLabels")).items():
        yield from _key_problems(str(key), "matchLabels")
        if isinstance(wanted, str):
            yield from _value_problems(wanted, "matchLabels")
    for index, item in enumerate(as_list(body.get("matchExpressions"))):
        entry, place = as_map(item), f"matchExpressions[{index}]"
        operator, values = str(entry.get("operator", "")), as_list(entry.get("values"))
        if operator not in LABEL_OPERATORS:
            yield f"{place}.operator: Invalid value: {quoted(operator)}: not a valid selector operator"
        elif operator in ("In", "NotIn") and not values:
            yield f"{place}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
        elif operator in ("Exists", "DoesNotExist") and values:
            yield f"{place}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield from _key_problems(str(entry.get("key", "")), f"{place}.key")
        for number, wanted in enumerate(values):
            if isinstance(wanted, str):
                yield from _value_problems(wanted, f"{place}.values[{number}]")


def _key_problems(key: str, place: str) -> Iterator[str]:
    source, bare = split_key(key)
    extended = f"{source}.{bare}"
    for problem in _qualified(extended):
        yield f"{place}: Invalid value: {quoted(extended)}: {problem}"


def _value_problems(value: str, place: str) -> Iterator[str]:
    if len(value.encode()) > 63:
        yield f"{place}: Invalid value: {quoted(value)}: {_TOO_LONG.format(63)}"
    if value and not re.fullmatch(_NAME, value):
        yield f"{place}: Invalid value: {quoted(value)}: {_VALUE_HELP}"


def _qualified(key: str) -> Iterator[str]:
    prefix, slash, name = key.partition("/")
    if "/" in name:
        yield f"a qualified name {_NAME_HELP} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    if not slash:
        prefix, name = "", key
    elif not prefix:
        yield "prefix part must be non-empty"
    else:
        if len(prefix) > 253:
            yield f"prefix part {_TOO_LONG.format(253)}"
        if not re.fullmatch(_SUBDOMAIN, prefix):
            yield f"prefix part {_SUBDOMAIN_HELP}"
    if not name:
        yield "name part must be non-empty"
        return
    if len(name.encode()) > 63:
        yield f"name part {_TOO_LONG.format(63)}"
    if not re.fullmatch(_NAME, name):
        yield f"name part {_NAME_HELP}"
