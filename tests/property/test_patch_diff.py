"""Any two texts: our alignment turns one into the other, and touches only lines that differ."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stallscope.remedy.align import changes, hunks

LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12)


@given(LINES, LINES)
@settings(max_examples=400)
def test_the_changes_make_the_new_text(old: list[str], new: list[str]) -> None:
    made, at = [], 0
    for change in changes(old, new):
        made += old[at : change.old_start] + new[change.new_start : change.new_end]
        at = change.old_end
    assert made + old[at:] == new


@given(LINES, st.lists(st.tuples(st.integers(0, 12), st.lists(st.sampled_from("xyz"), min_size=1, max_size=4)), max_size=3))
@settings(max_examples=400)
def test_pure_insertions_remove_no_line(old: list[str], inserted: list[tuple[int, list[str]]]) -> None:
    new = list(old)
    for at, lines in inserted:
        new[min(at, len(new)) : min(at, len(new))] = lines
    assert all(change.old_start == change.old_end for change in changes(old, new))


def test_hunks_share_context() -> None:
    old = [str(i) for i in range(40)]
    new = [*old[:10], "x", *old[10:16], "y", *old[16:30], "z", *old[30:]]
    groups = list(hunks(changes(old, new), 3))
    assert [len(group) for group in groups] == [2, 1]
