"""The origin of a model: how arguments of a call become its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from .._types import Args, Kwargs, is_dict, is_items


class Example(NamedTuple):
    """Arguments of a call, and which sizes they have, in words."""

    args: Args
    kwargs: Kwargs
    sizes: str


class NoExample(Exception):
    """There are no arguments of other sizes. The text has the reason."""


class Origin(Protocol):
    """The source of a model."""

    def flatten(self, args: Args, kwargs: Kwargs) -> list[object]:
        """The values within arguments that are inputs, in the order of the inputs."""
        ...

    def order(self, kwargs: Kwargs) -> Kwargs:
        """Keyword arguments in the order of the inputs."""
        ...

    def may_name_inputs(self, kwargs: Kwargs) -> bool:
        """Whether keywords may be names of inputs, instead of the module's parameters."""
        ...

    def at_other_sizes(self, args: Args, kwargs: Kwargs) -> Iterator[Example]:
        """Arguments with larger dynamic dimensions, to be tried in turn.

        Raises:
            NoExample: There are none.
        """
        ...


class UnknownOrigin:
    """The origin of a model that was read: an ``Origin``."""

    def flatten(self, args: Args, kwargs: Kwargs) -> list[object]:
        """The values within arguments, in order."""
        given: list[object] = [*args, *kwargs.values()]
        if any(is_dict(value) or is_items(value) for value in given):
            from .. import _pytree

            given = _pytree.leaves(given)
        return [value for value in given if value is not None]

    def order(self, kwargs: Kwargs) -> Kwargs:
        """Keyword arguments as they were given."""
        return kwargs

    def may_name_inputs(self, kwargs: Kwargs) -> bool:
        """True: there are no other names."""
        return True

    def at_other_sizes(self, args: Args, kwargs: Kwargs) -> Iterator[Example]:
        """Raises NoExample: relations between sizes are unknown."""
        raise NoExample("the model does not tell which ones there may be")
