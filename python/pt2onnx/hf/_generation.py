"""The models that text generation needs, with example arguments."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import torch

from . import _caches

#: Names of dimensions, those of optimum where it names them.
_BATCH, _LENGTH, _PAST = "batch_size", "sequence_length", "past_sequence_length"
_TOTAL, _ENCODER = "total_sequence_length", "encoder_sequence_length"


class Part(NamedTuple):
    """The fields of ``SubModel``."""

    model: torch.nn.Module
    kwargs: dict[str, object]
    dynamic_shapes: dict[str, object]
    output_names: str | None = None


def generation_models(
    model: torch.nn.Module, batch: int, length: int, past: int
) -> dict[str, Part]:
    """See ``pt2onnx.hf.generation_models``."""
    _caches.register()
    if getattr(model, "main_input_name", "input_ids") != "input_ids":
        raise ValueError(
            f"generation_models() is for text; {type(model).__name__} takes "
            f"{model.main_input_name}: call pt2onnx.export for each part"
        )
    # transformers adds attributes that a module does not have.
    of_transformers: Any = model
    if of_transformers.config.is_encoder_decoder:
        return _encoder_decoder(of_transformers, batch, length, past)
    device = of_transformers.device
    with torch.no_grad():
        ids = torch.zeros(batch, past, dtype=torch.int64, device=device)
        cache = of_transformers(input_ids=ids, use_cache=True).past_key_values
    kwargs: dict[str, object] = {
        "input_ids": torch.zeros(batch, length, dtype=torch.int64, device=device),
        "attention_mask": torch.ones(batch, past + length, dtype=torch.int64, device=device),
    }
    shapes: dict[str, object] = {
        "input_ids": {0: _BATCH, 1: _LENGTH},
        "attention_mask": {0: _BATCH, 1: _TOTAL},
    }
    if "position_ids" in inspect.signature(model.forward).parameters:
        positions = torch.arange(past, past + length, device=device)
        kwargs["position_ids"] = positions.expand(batch, length).contiguous()
        shapes["position_ids"] = {0: _BATCH, 1: _LENGTH}
    kwargs |= {"past_key_values": cache, "use_cache": True}
    shapes |= {"past_key_values": {0: _BATCH, 2: _PAST}, "use_cache": None}
    return {"model": Part(model, kwargs, shapes)}


class Decoder(torch.nn.Module):
    """The decoder of an encoder-decoder model with its head."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.train(model.training)

    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_attention_mask: torch.Tensor,
        encoder_hidden_states: torch.Tensor | None = None,
        past_key_values: Any = None,
    ) -> dict[str, Any]:
        """The logits, and the cache: of the first token all of it, then the decoder's."""
        model = self.model
        first = encoder_hidden_states is not None
        if not first:
            # The cache has their effect on the decoder, but they must be there.
            shape = (*encoder_attention_mask.shape, model.config.hidden_size)
            encoder_hidden_states = torch.zeros(shape, dtype=model.dtype, device=model.device)
        result = model(
            attention_mask=encoder_attention_mask,
            decoder_input_ids=input_ids,
            encoder_outputs=(encoder_hidden_states,),
            past_key_values=past_key_values,
            use_cache=True,
        )
        cache = result.past_key_values
        if first:
            return {"logits": result.logits, "past_key_values": cache}
        # The encoder's part does not change.
        layers = enumerate(cache.self_attention_cache.layers)
        present = {
            str(i): {"decoder": {"key": layer.keys, "value": layer.values}} for i, layer in layers
        }
        return {"logits": result.logits, "present": present}


def _encoder_decoder(model: Any, batch: int, length: int, past: int) -> dict[str, Part]:
    ids = torch.zeros(batch, length, dtype=torch.int64, device=model.device)
    mask = torch.ones_like(ids)
    first = ids.new_zeros(batch, past)
    with torch.no_grad():
        result = model(input_ids=ids, attention_mask=mask, decoder_input_ids=first, use_cache=True)
    rows, encoded = {0: _BATCH, 1: _LENGTH}, {0: _BATCH, 1: _ENCODER}
    encoder: dict[str, object] = {"input_ids": ids, "attention_mask": mask}
    decoder: dict[str, object] = {
        "input_ids": ids.new_zeros(batch, length),
        "encoder_attention_mask": mask,
    }
    shapes: dict[str, object] = {"input_ids": rows, "encoder_attention_mask": encoded}
    cache = {
        "self_attention_cache": {0: _BATCH, 2: _PAST},
        "cross_attention_cache": {0: _BATCH, 2: _ENCODER},
    }
    made = Decoder(model)
    encoder_shapes: dict[str, object] = {"input_ids": rows, "attention_mask": rows}
    states, values = result.encoder_last_hidden_state, result.past_key_values
    return {
        "encoder_model": Part(model.get_encoder(), encoder, encoder_shapes, "from-tree"),
        "decoder_model": Part(
            made,
            {**decoder, "encoder_hidden_states": states},
            {**shapes, "encoder_hidden_states": encoded},
        ),
        "decoder_with_past_model": Part(
            made, {**decoder, "past_key_values": values}, {**shapes, "past_key_values": cache}
        ),
    }
