"""Types that several modules share, and checks that narrow ``object`` to containers."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol, TypeGuard


class Writable(Protocol):
    """An object to write bytes to."""

    def write(self, data: bytes, /) -> object: ...


#: Where a file is written: a path, or an object.
Destination = str | os.PathLike[str] | Writable

#: A module, or a function.
Model = Callable[..., object]
Args = tuple[object, ...]
Kwargs = dict[str, object]


def is_path(value: Destination) -> TypeGuard[str | os.PathLike[str]]:
    """Whether files are written to a path. A value that is neither a path nor an object to write to
    is one, and an error."""
    return isinstance(value, (str, os.PathLike)) or not hasattr(value, "write")


def is_dict(value: object) -> TypeGuard[dict[object, object]]:
    """Whether it is a dict."""
    return isinstance(value, dict)


def is_items(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Whether it is a list or a tuple."""
    return isinstance(value, (list, tuple))


def class_of(value: object) -> type[object]:
    """The class of a value."""
    return type(value)


def is_plain_dict(value: object) -> TypeGuard[dict[object, object]]:
    """Whether it is a dict, and not one of a subclass."""
    return type(value) is dict


def is_plain_list(value: object) -> TypeGuard[list[object]]:
    """Whether it is a list, and not one of a subclass."""
    return type(value) is list
