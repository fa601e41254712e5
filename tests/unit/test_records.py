"""`records.dataclass` beside the standard decorator: the same class bodies must behave the same."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from stallscope import records


@records.dataclass(frozen=True, slots=True, kw_only=True)
class Pickled:
    a: int
    b: tuple[int, ...] = ()


def twins(body, **options):
    """The class made by both decorators."""
    return [decorate(**options)(body()) for decorate in (dataclasses.dataclass, records.dataclass)]


def point():
    class Point:
        """A point."""

        x: int
        y: int = 2
        note: str = dataclasses.field(default="", compare=False)
        tags: list[str] = dataclasses.field(default_factory=list, repr=False, hash=False)

        @property
        def sum(self) -> int:
            return self.x + self.y

    return Point


OPTIONS = [
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "kw_only": True},
    {"frozen": True, "slots": True, "kw_only": True},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_same_objects(options) -> None:
    for cls in twins(point, **options):
        one, two = cls(x=1), cls(x=1, y=2, note="n", tags=[])
        assert one == two and hash(one) == hash(two) and one != cls(x=2) and one != 1
        assert repr(one).endswith("Point(x=1, y=2, note='')")
        assert one.tags == [] and one.tags is not two.tags
        assert one.sum == 3
        assert dataclasses.replace(one, y=5) == cls(x=1, y=5)
        assert dataclasses.asdict(one) == {"x": 1, "y": 2, "note": "", "tags": []}
        assert [f.name for f in dataclasses.fields(cls)] == ["x", "y", "note", "tags"]
        assert dataclasses.is_dataclass(cls) and cls.__doc__ == "A point."
        assert hasattr(one, "__dict__") is not options.get("slots", False)
        for act in (lambda one=one: setattr(one, "x", 3), lambda one=one: delattr(one, "x")):
            with pytest.raises(dataclasses.FrozenInstanceError):
                act()
        assert copy.deepcopy(one) == one and copy.copy(one) == one


@pytest.mark.parametrize("options", OPTIONS)
def test_the_same_complaints_about_arguments(options) -> None:
    def texts(cls: Any) -> list[str]:
        found = []
        for call in (cls, lambda: cls(x=1, z=2), lambda: cls(1, 2, 3, 4, 5)):
            with pytest.raises(TypeError) as caught:
                call()
            found.append(str(caught.value).rpartition("Point.")[2])
        return found

    standard, ours = (texts(cls) for cls in twins(point, **options))
    assert ours == standard


def test_matching_and_positions() -> None:
    for cls in twins(point, frozen=True, slots=True):
        match cls(7, 8):
            case cls(x, y):
                assert (x, y) == (7, 8)
            case _:
                pytest.fail("no match")


def test_methods_of_the_class_itself_stay() -> None:
    def body():
        class Own:
            x: int = 0

            def __repr__(self) -> str:
                return "own"

            def __eq__(self, other: object) -> bool:
                return True

            def __hash__(self) -> int:
                return 7

            def __post_init__(self) -> None:
                object.__setattr__(self, "x", self.x + 1)

        return Own

    for cls in twins(body, frozen=True):
        assert (repr(cls()), cls(), hash(cls()), cls(x=1).x) == ("own", cls(x=5), 7, 2)


def test_inheritance() -> None:
    for decorate in (dataclasses.dataclass, records.dataclass):

        @decorate(frozen=True, slots=True, kw_only=True)
        class Base:
            a: int = 1

        @decorate(frozen=True, slots=True, kw_only=True)
        class Derived(Base):
            b: int = 2

        class Plain(Derived):
            pass

        assert (Derived(a=3).a, Derived(a=3).b, Base() == Derived(), Plain(b=4).b) == (3, 2, False, 4)
        assert Plain(b=4) == Plain(b=4) and Plain() != Derived()


def test_pickling() -> None:
    made = Pickled(a=1, b=(2,))
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301


def test_ordered_and_mutable_classes_are_the_standard_ones() -> None:
    @records.dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        a: int

    @records.dataclass
    class Mutable:
        a: int

    assert sorted([Ordered(2), Ordered(1)]) == [Ordered(1), Ordered(2)]
    made = Mutable(1)
    made.a = 2
    assert made == Mutable(2)


def test_nothing_is_compiled_until_an_object_is_made(monkeypatch) -> None:
    compiled = []
    monkeypatch.setattr(
        records, "_compiled_init", lambda cls, real=records._compiled_init: compiled.append(cls) or real(cls)
    )
    cls = records.dataclass(frozen=True, slots=True)(point())
    assert compiled == []
    cls(1)
    cls(2)
    assert compiled == [cls]
