"""Which files are read. Every case is a real tree in a temporary directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stallscope.errors import LoadError
from stallscope.load.discover import discover


def tree(root: Path, *files: str) -> Path:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a: 1\n")
    return root


def ignore(directory: Path, *lines: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / ".gitignore").write_text("\n".join(lines) + "\n")


def found(root: Path, *paths: str) -> list[str]:
    sources = discover([str(root / p) for p in paths or ("",)]).sources
    return [s.path.relative_to(root).as_posix() for s in sources]


def test_suffixes_hidden_and_order(tmp_path: Path) -> None:
    tree(tmp_path, "b.yml", "a.yaml", "c.JSON", "x.txt", ".hidden.yaml", ".git/x.yaml", "d/z.yaml", "d/a/y.yaml", "B/x.yaml")
    assert found(tmp_path) == ["a.yaml", "b.yml", "c.JSON", "B/x.yaml", "d/z.yaml", "d/a/y.yaml"]


def test_named_files_are_always_read(tmp_path: Path) -> None:
    tree(tmp_path, "x.txt", ".hidden.yaml", "build/y.yaml")
    ignore(tmp_path, "build/", "x.txt")
    assert found(tmp_path, "x.txt", ".hidden.yaml", "build/y.yaml") == ["x.txt", ".hidden.yaml", "build/y.yaml"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    tree(tmp_path, "a.yaml", "b.yaml")
    sources = discover([str(tmp_path), str(tmp_path / "b.yaml"), str(tmp_path)]).sources
    assert [(s.path.name, s.named) for s in sources] == [("a.yaml", False), ("b.yaml", True)]


def test_gitignore_of_the_directory(tmp_path: Path) -> None:
    tree(tmp_path, "a.yaml", "gen.yaml", "build/x.yaml", "keep/gen.yaml", "keep/b.yaml", "deep/down/build/x.yaml")
    ignore(tmp_path, "# comment", "build/", "gen.yaml", "!keep/gen.yaml")
    assert found(tmp_path) == ["a.yaml", "keep/b.yaml", "keep/gen.yaml"]


def test_nested_gitignore_overrides_the_one_above(tmp_path: Path) -> None:
    tree(tmp_path, "a.gen.yaml", "sub/a.gen.yaml", "sub/b.yaml", "sub/sub/b.yaml")
    ignore(tmp_path, "*.gen.yaml")
    ignore(tmp_path / "sub", "!a.gen.yaml", "/b.yaml")
    assert found(tmp_path) == ["sub/a.gen.yaml", "sub/sub/b.yaml"]


def test_nothing_below_an_ignored_directory_comes_back(tmp_path: Path) -> None:
    """gitignore(5): it is not possible to re-include a file if a parent directory of that file is excluded."""
    tree(tmp_path, "out/keep.yaml")
    ignore(tmp_path, "out/", "!out/keep.yaml")
    assert found(tmp_path) == []


def test_gitignore_above_up_to_the_repository(tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    tree(repository, "manifests/a.yaml", "manifests/secret.yaml", ".git/HEAD")
    ignore(tmp_path, "*.yaml")  # outside the repository: not ours
    ignore(repository, "secret.yaml")
    assert found(repository / "manifests") == ["a.yaml"]


def test_an_ignored_directory_that_the_user_names_is_read(tmp_path: Path) -> None:
    tree(tmp_path, "build/a.yaml", ".git/HEAD")
    ignore(tmp_path, "build/")
    assert found(tmp_path) == []
    assert found(tmp_path / "build") == ["a.yaml"]


def test_links_that_lead_back(tmp_path: Path) -> None:
    tree(tmp_path, "a/x.yaml")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "self.yaml").symlink_to(tmp_path / "self.yaml")
    (tmp_path / "selfdir").symlink_to("selfdir")
    (tmp_path / "again").symlink_to(tmp_path / "a")
    (tmp_path / "nowhere.yaml").symlink_to(tmp_path / "gone")
    assert found(tmp_path) == ["a/x.yaml"]


def test_a_directory_reached_by_a_link(tmp_path: Path) -> None:
    tree(tmp_path, "real/x.yaml")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert found(tmp_path, "link") == ["link/x.yaml"]


def test_other_things_than_files_are_skipped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "dir.yaml").mkdir()
    tree(tmp_path, "a.yaml", "dir.yaml/b.yaml")
    assert found(tmp_path) == ["a.yaml", "dir.yaml/b.yaml"]


def test_standard_input_once() -> None:
    assert [(s.name, s.is_stdin, s.named) for s in discover(["-", "-"]).sources] == [("-", True, True)]


def test_empty_directories_are_told(tmp_path: Path) -> None:
    tree(tmp_path, "a/x.yaml", "b/readme.md")
    result = discover([str(tmp_path / "a"), str(tmp_path / "b")])
    assert result.empty == (str(tmp_path / "b"),)
    assert len(result.sources) == 1


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("gone.yaml", "no such file or directory", "there is no gone.yaml in"),
        ("jbo.yaml", "no such file or directory", "job.yaml?"),
        ("no/such/x.yaml", "no such file or directory", "does not exist either"),
        ("dangling", "a symbolic link to nothing", "where it points"),
    ],
)
def test_missing_paths(tmp_path: Path, path: str, message: str, hint: str) -> None:
    tree(tmp_path, "job.yaml")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    with pytest.raises(LoadError) as caught:
        discover([str(tmp_path / path)])
    assert message in caught.value.message
    assert path in caught.value.message
    assert hint in caught.value.hint
