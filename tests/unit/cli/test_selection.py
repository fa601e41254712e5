from __future__ import annotations

import pytest

from stallscope.cli.selection import parse_selection
from stallscope.errors import UsageError

KNOWN = {"STL101": "job-can-split", "STL201": "peer-denied", "STL203": "rendezvous-denied", "STL302": "shm-too-small"}


@pytest.mark.parametrize(
    ("select", "ignore", "enabled"),
    [
        ((), (), ["STL101", "STL201", "STL203", "STL302"]),
        (("STL2",), (), ["STL201", "STL203"]),
        (("stl2", "shm-too-small"), (), ["STL201", "STL203", "STL302"]),
        ((), ("STL2",), ["STL101", "STL302"]),
        (("STL2",), ("STL203",), ["STL201"]),
        (("STL203",), ("STL2",), ["STL203"]),  # the longer prefix wins
        (("STL203",), ("STL203",), []),  # a tie is ignored
        (("STL",), ("peer-denied",), ["STL101", "STL203", "STL302"]),
    ],
)
def test_the_longer_prefix_wins(select, ignore, enabled) -> None:
    selection = parse_selection(select, ignore, KNOWN)
    assert [rule for rule in KNOWN if selection.enabled(rule)] == enabled


@pytest.mark.parametrize(
    ("word", "instead"), [("STL8", ""), ("STL204", "; did you mean STL2"), ("peer-deny", "; did you mean peer-denied?")]
)
def test_a_typo_does_not_switch_a_check_off(word, instead) -> None:
    with pytest.raises(UsageError) as caught:
        parse_selection((), (word,), KNOWN)
    assert caught.value.message.startswith(f"--ignore: no rule begins with {word!r}{instead}")
