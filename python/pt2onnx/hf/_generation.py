"""The models that text generation needs, with example arguments."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple, cast

import torch
from transformers.modeling_outputs import BaseModelOutput

from . import _caches, _states
from ._inputs import BATCH, HEIGHT, LENGTH, WIDTH, Examples, Input

#: Names of dimensions, those of optimum where it names them.
_PAST, _ENCODER = "past_sequence_length", "encoder_sequence_length"
_TOTAL = f"{_PAST} + {LENGTH}"


class Part(NamedTuple):
    """The fields of ``SubModel``."""

    model: torch.nn.Module
    kwargs: dict[str, object]
    dynamic_shapes: dict[str, object]
    output_names: list[str] | str | None = None
    input_names: list[str] | None = None
    one_token: dict[str, object] | None = None
    is_twice: bool = False


def generation_models(
    model: torch.nn.Module, batch: int, length: int, past: int
) -> dict[str, Part]:
    """See ``pt2onnx.hf.generation_models``."""
    _caches.register()
    # transformers adds attributes that a module does not have.
    of_transformers: Any = model
    if of_transformers.config.is_encoder_decoder:
        return _encoder_decoder(of_transformers, batch, length, past)
    return {"model": _decoder(of_transformers, batch, length, past)}


def _decoder(model: Any, batch: int, length: int, past: int) -> Part:
    device, parameters = model.device, inspect.signature(model.forward).parameters
    first = {
        "input_ids": torch.zeros(batch, past, dtype=torch.int64, device=device),
        "attention_mask": torch.ones(batch, past, dtype=torch.int64, device=device),
    }
    given = {name: value for name, value in first.items() if name in parameters}
    stateful, result = _states.example(model, given)
    ids = torch.zeros(batch, length, dtype=torch.int64, device=device)
    mask = torch.ones(batch, past + length, dtype=torch.int64, device=device)
    kwargs: dict[str, object] = {"input_ids": ids, "attention_mask": mask}
    shapes: dict[str, object] = {
        "input_ids": {0: BATCH, 1: LENGTH},
        "attention_mask": {0: BATCH, 1: _TOTAL},
    }
    if "position_ids" in parameters:
        positions = torch.arange(past, past + length, device=device)
        kwargs["position_ids"] = positions.expand(batch, length).contiguous()
        shapes["position_ids"] = {0: BATCH, 1: LENGTH}
    own = {name: value for name, value in kwargs.items() if name in parameters}
    one = {**own, "input_ids": ids[:, :1].clone()}
    if "position_ids" in one:
        one["position_ids"] = ids.new_full((batch, 1), past)
    if "attention_mask" in one:
        one["attention_mask"] = mask[:, : past + 1].clone()
    if stateful is None:
        cache = {"past_key_values": result.past_key_values, "use_cache": True}
        shapes |= {"past_key_values": {0: BATCH, 2: _PAST}, "use_cache": None}
        places = [name for name, _ in _caches.named_tensors(result.past_key_values)]
        return Part(
            model,
            {**kwargs, **cache},
            shapes,
            # A trace does not know them.
            ["logits", *(f"present.{place}" for place in places)],
            [*kwargs, *(f"past_key_values.{place}" for place in places)],
            {**one, **cache},
        )
    return Part(
        stateful,
        {"inputs": own, "states": stateful.states},
        {"inputs": {name: shapes[name] for name in own}, "states": stateful.axes(_PAST, BATCH)},
        ["logits", *stateful.names("present")],
        [*own, *stateful.names("past")],
        {"inputs": one, "states": stateful.states},
        is_twice=True,
    )


class Encoder(torch.nn.Module):
    """The encoder of an encoder-decoder model."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model.get_encoder()
        self.train(model.training)

    def forward(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The states of the last layer."""
        return {"last_hidden_state": self.model(**inputs, return_dict=True)[0]}


class Decoder(torch.nn.Module):
    """The decoder of an encoder-decoder model with its head.

    Args:
        model: The model.
        width: The number of features of the encoder's states.
    """

    def __init__(self, model: Any, width: int) -> None:
        super().__init__()
        self.model = model
        self._width = width
        self.train(model.training)

    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_attention_mask: torch.Tensor | None = None,
        encoder_hidden_states: torch.Tensor | None = None,
        past_key_values: Any = None,
    ) -> dict[str, Any]:
        """The logits, and the cache: of the first token all of it, then the decoder's."""
        model, mask = self.model, encoder_attention_mask
        first = encoder_hidden_states is not None
        if encoder_hidden_states is None:
            # The cache has their effect on the decoder, but they must be there.
            rows = (input_ids.shape[0], 1) if mask is None else mask.shape
            encoder_hidden_states = torch.zeros(
                (*rows, self._width), dtype=model.dtype, device=model.device
            )
        result = model(
            **({} if mask is None else {"attention_mask": mask}),
            decoder_input_ids=input_ids,
            encoder_outputs=BaseModelOutput(encoder_hidden_states),
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


class MergedDecoder(torch.nn.Module):
    """One of the two decoders, with the inputs and outputs of both.

    Args:
        decoder: The decoder.
        later: Whether it is for the tokens after the first.
    """

    def __init__(self, decoder: Decoder, later: bool) -> None:
        super().__init__()
        self.decoder = decoder
        self._later = later
        self.train(decoder.training)

    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_hidden_states: torch.Tensor,
        past_key_values: Any,
        use_cache_branch: torch.Tensor,
        encoder_attention_mask: torch.Tensor | None = None,
    ) -> dict[str, Any]:
        """The logits and the whole cache."""
        result: dict[str, Any]
        if not self._later:
            result = self.decoder(input_ids, encoder_attention_mask, encoder_hidden_states)
            return result
        result = self.decoder(input_ids, encoder_attention_mask, past_key_values=past_key_values)
        return {"logits": result["logits"], "past_key_values": past_key_values}


def _encoder_decoder(model: Any, batch: int, length: int, past: int) -> dict[str, Part]:
    main = model.main_input_name
    examples = Examples(model, batch, length)
    given = {name: value for name, value in examples.make((main,)).items()}
    if main == "input_ids":
        given["attention_mask"] = Input(torch.ones_like(given[main].value), {0: BATCH, 1: LENGTH})
    device = model.device
    encoder: dict[str, Any] = {name: one.value.to(device) for name, one in given.items()}
    ids = torch.zeros(batch, length, dtype=torch.int64, device=device)
    with torch.no_grad():
        result = model(**encoder, decoder_input_ids=ids.new_zeros(batch, past), use_cache=True)
    states, values = result.encoder_last_hidden_state, result.past_key_values
    rows, encoded = {0: BATCH, 1: LENGTH}, {0: BATCH, 1: _ENCODER}
    decoder: dict[str, object] = {"input_ids": ids}
    shapes: dict[str, object] = {"input_ids": rows}
    if "attention_mask" in encoder:
        decoder["encoder_attention_mask"] = encoder["attention_mask"]
        shapes["encoder_attention_mask"] = encoded
    cache = {
        "self_attention_cache": {0: BATCH, 2: _PAST},
        "cross_attention_cache": {0: BATCH, 2: _ENCODER},
    }
    made = Decoder(model, states.shape[-1])
    axes = {name: _axes(examples, one) for name, one in given.items()}
    return {
        "encoder_model": Part(
            Encoder(model), {"inputs": encoder}, {"inputs": axes}, "from-tree", list(encoder)
        ),
        "decoder_model": Part(
            made,
            {**decoder, "encoder_hidden_states": states},
            {**shapes, "encoder_hidden_states": encoded},
        ),
        "decoder_with_past_model": Part(
            made,
            {**decoder, "past_key_values": values},
            {**shapes, "past_key_values": cache},
        ),
    }


def _axes(examples: Examples, one: Input) -> dict[int, str]:
    """The dynamic axes of an input of an encoder: images keep their sizes."""
    return {axis: name for axis, name in one.axes.items() if name not in (HEIGHT, WIDTH)}


def merged_parts(parts: dict[str, Part]) -> list[Part]:
    """The decoders for the tokens after the first and for the first one, with the same inputs and
    outputs."""
    first, later = parts["decoder_model"], parts["decoder_with_past_model"]
    flag = torch.ones(1, dtype=torch.bool)
    kwargs = {**later.kwargs, **first.kwargs, "use_cache_branch": flag}
    shapes = {**later.dynamic_shapes, **first.dynamic_shapes, "use_cache_branch": None}
    decoder = cast(Decoder, first.model)
    return [Part(MergedDecoder(decoder, use), kwargs, shapes) for use in (True, False)]
