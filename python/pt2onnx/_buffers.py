"""Buffers of modules that run only for their results."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import torch


@contextlib.contextmanager
def keeping_buffers(model: object) -> Generator[None, None, None]:
    """Undoes changes of a module's buffers in this context: writes into them, other memory, and new
    tensors in their places. Buffers that share memory still do afterwards."""
    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    buffers = [
        (module, name, buffer)
        for module in modules
        for name, buffer in module.named_buffers(recurse=False)
    ]
    old = [(buffer.data, buffer.clone()) for _, _, buffer in buffers]
    try:
        yield
    finally:
        for (module, name, buffer), (memory, values) in zip(buffers, old, strict=True):
            buffer.data = memory
            if not _is_expanded(memory):
                with torch.inference_mode(memory.is_inference()):
                    memory.copy_(values)
            if getattr(module, name) is not buffer:
                setattr(module, name, buffer)


def _is_expanded(tensor: torch.Tensor) -> bool:
    """Whether elements share memory, which nothing can be written into."""
    if tensor.layout != torch.strided:
        return False
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return any(size > 1 and stride == 0 for size, stride in pairs)
