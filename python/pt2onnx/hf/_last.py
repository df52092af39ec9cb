"""Decoders that compute the logits of the last token of each row alone, which are those that a
runtime chooses the next token by."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import torch

#: The argument that says how many tokens a row has.
_MASK = "attention_mask"


@contextlib.contextmanager
def only_last(model: Any) -> Generator[None, None, None]:
    """Gives the head of a decoder the states of each row's last token. Rows are filled on the
    right, and their masks are of zeros and ones.

    Args:
        model: The model of transformers. One without a head that is a module returns all logits.
    """
    head: Any = model.get_output_embeddings()
    masks: list[torch.Tensor] = []

    def keep(_: object, args: object, kwargs: dict[str, Any]) -> None:
        masks[:] = [kwargs[_MASK]] if isinstance(kwargs.get(_MASK), torch.Tensor) else []

    def take(_: object, args: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        states, *others = args
        if not masks or masks[0].dim() != 2 or states.dim() != 3:
            return args
        # The first call has all tokens of a row. Later ones have one token, or some of one row
        # alone, which end with the last state.
        last = masks[0].sum(1).clamp(max=states.shape[1]) - 1
        rows = last.reshape(-1, 1, 1).expand(-1, 1, states.shape[2])
        return (states.gather(1, rows), *others)

    with contextlib.ExitStack() as hooks:
        if isinstance(head, torch.nn.Module):
            inner = model.base_model
            hooks.callback(inner.register_forward_pre_hook(keep, with_kwargs=True).remove)
            hooks.callback(head.register_forward_pre_hook(take).remove)
        yield
