"""Undoes the changes that running or capturing a module makes outside of its results."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import TypeVar

import torch

from ._globals import restoring_globals, without_modes
from ._objects import Objects
from ._storages import Storages

__all__ = ["Snapshot"]

T = TypeVar("T")


class Snapshot:
    """The state of a module and of all that it can change: attributes of objects, content of lists,
    dicts and sets, class attributes, globals of its file, memory of tensors, settings of torch.

    Args:
        roots: The module or function, its arguments.
    """

    def __init__(self, *roots: object) -> None:
        self._storages = Storages()
        with without_modes():
            self._objects = Objects(roots, self._storages)

    @contextlib.contextmanager
    def kept(self, *, exports: bool = False) -> Generator[None, None, None]:
        """Restores the state at the end of this context, also after errors and interrupts.

        Args:
            exports: Whether torch.export captures the module in it.
        """
        with restoring_globals():
            try:
                with self._storages.copied() if exports else self._storages.watched():
                    yield
            finally:
                with without_modes():
                    self._objects.restore()
                    self._storages.restore()

    def save(self, tensor: torch.Tensor) -> None:
        """Copies the memory of a tensor that is written to, where writes are not watched."""
        with without_modes():
            self._storages.save(tensor)

    def detached(self, value: T) -> T:
        """A result of the module that later restores do not change."""
        return self._storages.detached(value)
