"""``is_causal`` that is computed from sizes, as in ``is_causal=n > 1``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator
from typing import Any

import torch

from . import _patches

_NAME = "scaled_dot_product_attention"


def is_about(error: BaseException) -> bool:
    """Whether a capture failed because ``is_causal`` is not a bool."""
    text = str(error)
    return isinstance(error, TypeError) and f"{_NAME}(): argument 'is_causal' must be bool" in text


@contextlib.contextmanager
def computed(module: torch.nn.Module) -> Generator[None, None, None]:
    """In this context, ``scaled_dot_product_attention`` takes it, also where the files of a
    module's classes have imported the function."""
    original: Callable[..., torch.Tensor] = torch.nn.functional.scaled_dot_product_attention

    def attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: Any = False,
        **options: Any,
    ) -> torch.Tensor:
        if isinstance(is_causal, bool) or attn_mask is not None:
            return original(query, key, value, attn_mask, dropout_p, is_causal, **options)
        if isinstance(is_causal, torch.SymBool):
            is_causal = torch.scalar_tensor(is_causal, dtype=torch.bool, device=query.device)
        sizes = query.shape[-2], key.shape[-2]
        below = torch.ones(sizes, dtype=torch.bool, device=query.device).tril()
        return original(query, key, value, below | ~is_causal, dropout_p, **options)

    files = {sys.modules.get(type(part).__module__) for part in module.modules()}
    with (
        _patches.applied("attention", {_NAME: lambda _: attention}),
        contextlib.ExitStack() as stack,
    ):
        for file in files - {None, torch.nn.functional}:
            if vars(file).get(_NAME) is original:
                stack.enter_context(_patches.replaced(file, _NAME, attention))
        yield
