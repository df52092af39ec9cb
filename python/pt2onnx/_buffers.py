"""Buffers of modules that run only for their results."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import torch


@contextlib.contextmanager
def keeping_buffers(model: object) -> Generator[None, None, None]:
    """Undoes changes of a module's buffers in this context: writes into them, and new tensors in
    their places."""
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    buffers = [
        (module, name, buffer)
        for module in modules
        for name, buffer in module.named_buffers(recurse=False)
    ]
    old = [buffer.clone() for _, _, buffer in buffers]
    try:
        yield
    finally:
        for (module, name, buffer), values in zip(buffers, old, strict=True):
            buffer.data = values
            if getattr(module, name) is not buffer:
                setattr(module, name, buffer)
