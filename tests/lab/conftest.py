"""The lab's tests need to make network namespaces; where that is forbidden they are skipped, with the reason."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


def _why_not() -> str:
    if sys.platform != "linux":
        return "the pocket cluster needs Linux"
    from stallscope.errors import LabError
    from stallscope.lab.names import TARGETS
    from stallscope.lab.sandbox import isolated

    missing = [target for target in TARGETS if not Path(target).exists()]
    if missing:
        return f"{missing[0]} does not exist here, so pods cannot get names"

    try:
        list(isolated(lambda _emit: None))
    except LabError as error:
        return f"{error.message}; {error.hint}"
    return ""


REASON = _why_not()


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    if REASON:
        pytest.skip(REASON)


@pytest.fixture
def needs_nft() -> None:
    if shutil.which("nft") is None:
        pytest.skip("nft is not installed (package nftables)")


@pytest.fixture
def shared_file() -> Callable[[str], Path]:
    """A file of the material beside the repository, or a skip."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"shared/{name} is not present")
        return path

    return find


@pytest.fixture(scope="session")
def zygote_factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], object]]:
    """One rank starter for the whole session: importing torch costs seconds."""
    from stallscope.lab.ranks import Zygote

    made: list[Zygote] = []

    def get() -> Zygote:
        if not made:
            made.append(Zygote(tmp_path_factory.mktemp("ranks")))
        return made[0]

    yield get
    for zygote in made:
        zygote.close()
