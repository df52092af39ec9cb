"""Memory of weights whose bytes are also in files, to which models can refer."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Generator, Mapping

import torch

#: A file and an offset in it.
Place = tuple[str, int]

#: Address and number of bytes of a storage.
Memory = tuple[int, int]

_PLACES: contextvars.ContextVar[Mapping[Memory, Place] | None] = contextvars.ContextVar("places")


@contextlib.contextmanager
def at(places: Mapping[Memory, Place]) -> Generator[None, None, None]:
    """Weights have these places in files within this context, in which they must not change."""
    token = _PLACES.set(places)
    try:
        yield
    finally:
        _PLACES.reset(token)


def memory(storage: torch.UntypedStorage) -> Memory:
    """The memory of a storage."""
    return storage.data_ptr(), storage.nbytes()


def place(storage: torch.UntypedStorage) -> Place | None:
    """The place of a storage in a file, if it has one."""
    places = _PLACES.get(None)
    return places.get(memory(storage)) if places else None
