"""`discover` asks pathspec only about paths that hold the fixed parts of some line: that must never change the answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from stallscope.load.discover import _Rules

words = st.sampled_from(["a", "b", "ab", "build", ".yaml", "-"])
wild = st.sampled_from(["*", "**", "?", "/", "[ab]", "[!a]", "\\*", "\\a", " "])
lines = st.builds(
    lambda sign, parts, end: sign + "".join(parts) + end,
    st.sampled_from(["", "!", "/", "#", " "]),
    st.lists(words | wild, min_size=1, max_size=5),
    st.sampled_from(["", "/", " ", "/**"]),
)
paths = st.lists(st.lists(words, min_size=1, max_size=3).map("".join), min_size=1, max_size=4).map("/".join)


@given(st.lists(lines, min_size=1, max_size=4), paths, st.sampled_from(["", "/"]))
def test_a_path_passed_over_is_one_pathspec_has_nothing_to_say_about(rules: list[str], path: str, end: str) -> None:
    try:
        expected = GitIgnoreSpec.from_lines(rules).check_file(path + end).include
    except ValueError:  # pathspec refuses the line
        return
    assert _Rules(rules).says(path + end) == expected
