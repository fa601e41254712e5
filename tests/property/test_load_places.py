"""Lines and columns from offsets, against the plain way of counting them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallscope.model.places import Places

BREAK = re.compile(r"\r\n|\n|\r")


@pytest.mark.parametrize("block", [3, 8, 4096])
@given(text=st.text(st.sampled_from("ab\n\rü"), max_size=40))
def test_every_offset(text: str, block: int) -> None:
    starts = [0, *(m.end() for m in BREAK.finditer(text))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stallscope.model.places._BLOCK", block)
        places = Places(text)
        for offset in range(len(text) + 1):
            line = max(i for i, start in enumerate(starts) if start <= offset)
            assert places.position(offset) == (line + 1, offset - starts[line] + 1)


def test_a_byte_order_mark_takes_no_column() -> None:
    places = Places("\ufeffab\nc")
    assert [places.position(i) for i in range(6)] == [(1, 1), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]


def test_one_long_line_is_not_searched_again_for_each_offset() -> None:
    places = Places("x" * 300_000 + "\n" + "y" * 300_000)
    assert places.position(299_999) == (1, 300_000)
    assert places.position(600_000) == (2, 300_000 - 1 + 1)
