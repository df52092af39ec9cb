"""Undoes the changes that running or capturing a module makes outside of its results."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import TypeVar

import torch

from ._globals import leaving_transforms, restoring_globals, without_modes
from ._objects import Objects
from ._storages import Storages

__all__ = ["Snapshot", "leaving_transforms"]

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
    def kept(
        self, *, exports: bool = False, parameters: bool = False
    ) -> Generator[None, None, None]:
        """Restores the state at the end of this context, also after errors and interrupts.

        Args:
            exports: Whether torch captures the module in it, where writes are not watched.
            parameters: Whether the module may write to its parameters then.
        """
        with restoring_globals():
            try:
                with self._storages.copied(parameters) if exports else self._storages.watched():
                    yield
            finally:
                with without_modes():
                    self._objects.restore()
                    self._storages.restore()

    @property
    def is_small(self) -> bool:
        """Whether all memory of parameters can be copied."""
        return self._storages.is_small

    @property
    def writes(self) -> bool:
        """Whether something wrote to memory so far: copies that captures make do not count."""
        return self._storages.writes

    @contextlib.contextmanager
    def memory_kept(self) -> Generator[None, None, None]:
        """Restores the memory that was copied so far at the end of this context, for code that runs
        no Python and writes to no other memory."""
        try:
            yield
        finally:
            self._storages.restore_saved()

    def before_write(self, tensor: torch.Tensor) -> None:
        """Copies the memory of a tensor that will be written to, where writes are not watched."""
        with without_modes():
            self._storages.before_write(tensor)

    def detached(self, value: T) -> T:
        """A result of the module that later restores do not change."""
        return self._storages.detached(value)
