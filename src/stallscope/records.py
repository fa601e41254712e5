"""
`dataclass`, made cheap to define.

The standard decorator compiles six functions for every frozen class when its module is imported: 0.4 to 0.6 ms a class
(Python 3.11), a third of what a run of `check` costs. This one has the same meaning for the classes of this project
(frozen, compared field by field) and compiles only ``__init__``, and that when the first object is made; the other methods
are shared. Fields, defaults, slots, ``replace``, ``fields``, ``asdict`` and pattern matching are the standard library's.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # type checkers see the real one
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, order: bool = False, eq: bool = True, **options: Any
    ) -> Any:
        """The standard decorator; for frozen classes without an order, with methods that cost nothing to define."""

        def decorate(made: type) -> type:
            if not frozen or order or not eq or not set(options) <= {"slots", "kw_only"}:
                return dataclasses.dataclass(frozen=frozen, order=order, eq=eq, **options)(made)
            return _frozen(made, **options)

        return decorate if cls is None else decorate(cls)


def _frozen(made: type, *, slots: bool = False, kw_only: bool = False) -> Any:
    own = set(made.__dict__)
    made.__doc__ = made.__doc__ or f"{made.__name__}."  # else dataclasses asks `inspect` for a signature
    # eq and repr are off, so that nothing is compiled; frozen is ours, below
    cls: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(made)
    parts = dataclasses.fields(cls)
    names = tuple(f.name for f in parts)
    compared = tuple(f.name for f in parts if f.compare)
    shared = {
        "__init__": _first_init(cls),
        "__repr__": _repr(tuple(f.name for f in parts if f.repr)),
        "__eq__": _eq(_values(compared)),
        "__setattr__": _refuse_set,
        "__delattr__": _refuse_del,
        "__getstate__": _getstate(names),
        "__setstate__": _setstate(names),
    }
    for name, function in shared.items():
        if name not in own:
            setattr(cls, name, function)
    if "__hash__" not in own:
        cls.__hash__ = _hash(_values(tuple(f.name for f in parts if (f.compare if f.hash is None else f.hash))))
    return cls


def _values(names: tuple[str, ...]) -> Any:
    """A function from an object to the tuple of some of its fields."""
    if len(names) > 1:
        return attrgetter(*names)
    if names:
        only = attrgetter(names[0])
        return lambda made: (only(made),)
    return lambda _made: ()


def _eq(values: Any) -> Any:
    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(values: Any) -> Any:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr(names: tuple[str, ...]) -> Any:
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"

    return __repr__


def _refuse_set(_self: Any, name: str, _value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_del(_self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(names: tuple[str, ...]) -> Any:
    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    return __getstate__


def _setstate(names: tuple[str, ...]) -> Any:
    def __setstate__(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return __setstate__


def _first_init(cls: type) -> Any:
    """An ``__init__`` that makes way for the compiled one when it is first called."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        # a subclass that is no dataclass itself comes here too: compile for the class that has these fields
        if cls.__dict__["__init__"] is __init__:
            cls.__init__ = _compiled_init(cls)  # type: ignore[misc]
        cls.__init__(self, *args, **kwargs)  # type: ignore[misc]

    return __init__


def _compiled_init(cls: type) -> Any:
    """The ``__init__`` that the standard decorator would make: defaults, factories, keyword-only fields, post-init."""
    scope: dict[str, Any] = {"_set": object.__setattr__, "_absent": object()}
    positional: list[str] = []
    keywords: list[str] = []
    body: list[str] = []
    for field in dataclasses.fields(cls):
        name = field.name
        (keywords if field.kw_only else positional).append(_parameter(field, scope))
        value = name
        if field.default_factory is not dataclasses.MISSING:
            value = f"_new_{name}() if {name} is _absent else {name}"
        body.append(f"    _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("    self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    exec("def __init__({}):\n{}".format(parameters, "\n".join(body) or "    pass"), scope)  # noqa: S102  field names only
    scope["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return scope["__init__"]


def _parameter(field: dataclasses.Field[Any], scope: dict[str, Any]) -> str:
    if field.default is not dataclasses.MISSING:
        scope[f"_default_{field.name}"] = field.default
        return f"{field.name}=_default_{field.name}"
    if field.default_factory is not dataclasses.MISSING:
        scope[f"_new_{field.name}"] = field.default_factory
        return f"{field.name}=_absent"
    return field.name
