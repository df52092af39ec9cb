"""States of decoders that are more than a cache of keys and values: those of convolutions, of state
space models and of linear attention.

Inputs and outputs have the names of transformers.js and onnxruntime-genai's kind: ``past_conv.0``
and ``present_conv.0``, ``past_ssm.0`` and ``present_ssm.0`` for recurrent states, and
``past_key_values.1.key`` for layers that have keys. Other states have the place in the model's own
object: ``past_state.2``. All are zero before the first token.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from .._types import is_items
from . import _caches, _loops

#: Where results have the state; the model takes it by the same name.
_FIELDS = ("past_key_values", "cache_params", "state")

#: The place of a state in a cache of transformers, and its name in models.
_PLACES = (
    (re.compile(r"(\d+)\.conv_states\.0"), r"_conv.\1"),
    (re.compile(r"(\d+)\.recurrent_states\.0"), r"_ssm.\1"),
    (re.compile(r"(\d+)\.(conv|recurrent)_states\.(\d+)"), r"_\2.\1.\3"),
)

#: The place of keys and values.
_KEYS = re.compile(r"\d+\.(key|value)")


def field_of(result: Any) -> str | None:
    """The field of a result that has the state."""
    return next((name for name in _FIELDS if getattr(result, name, None) is not None), None)


def is_plain(cache: object) -> bool:
    """Whether a state is a cache of keys and values alone."""
    named = _caches.named_tensors(cache)
    return _caches.is_cache(cache) and all(_KEYS.fullmatch(name) for name, _ in named)


@dataclasses.dataclass(frozen=True)
class Attribute:
    """A tensor that a layer keeps in itself from call to call."""

    layer: str
    name: str

    @property
    def place(self) -> str:
        """Its name as a state."""
        return f"{self.layer}.{self.name}"


@contextlib.contextmanager
def kept(model: torch.nn.Module) -> Generator[None, None, None]:
    """Gives the layers back what they kept before."""
    old = [
        (layer, name, value)
        for layer in model.modules()
        for name, value in vars(layer).items()
        if value is None or isinstance(value, torch.Tensor)
    ]
    try:
        yield
    finally:
        for layer, name, value in old:
            vars(layer)[name] = value


def attributes(model: torch.nn.Module, run: Callable[[], object]) -> list[Attribute]:
    """The tensors that layers keep, after a run that sets them."""
    layers: list[tuple[str, torch.nn.Module]] = list(cast(Any, model.named_modules()))
    before: dict[tuple[str, str], object] = {
        (path, name): value for path, layer in layers for name, value in vars(layer).items()
    }
    run()
    return [
        Attribute(path, name)
        for path, layer in layers
        for name, value in vars(layer).items()
        if isinstance(value, torch.Tensor) and before.get((path, name)) is not value
    ]


def _last(value: torch.Tensor, axis: int, count: Any) -> torch.Tensor:
    """The last elements, without a question about sizes."""
    places = torch.arange(count, device=value.device) + (value.shape[axis] - count)
    return value.index_select(axis, places)


class _Ends(TorchFunctionMode):
    """Takes ``x[:, -n:]`` by its start where n is a size: torch does not see that n is at most the
    length of x, as that of a mask with the tokens of the past is."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        if func is torch.Tensor.__getitem__ and is_items(args[1]):
            steps: list[Any] = list(args[1])
            for axis, step in enumerate(steps):
                if not isinstance(step, slice):
                    break
                taken: Any = cast(Any, step)
                start: Any = taken.start
                of_sizes = isinstance(start, torch.SymInt) and taken.stop is None
                if of_sizes and taken.step is None and bool(start < 0):
                    steps[axis] = slice(None)
                    return _last(args[0], axis, -start)[tuple(steps)]
        return func(*args, **(kwargs or {}))


class StatefulDecoder(torch.nn.Module):
    """A decoder whose states are inputs and outputs.

    Args:
        model: The model.
        field: The name by which it takes and returns its state; None if layers keep all of it.
        state: An example of the state.
        kept: The tensors that layers keep.
    """

    def __init__(
        self, model: torch.nn.Module, field: str | None, state: object, kept: list[Attribute]
    ) -> None:
        super().__init__()
        self.model = model
        self._field, self._attributes = field, kept
        self._tree, named = _caches.packed(state)
        self.places = [name for name, _ in named]
        self.states = [tensor for _, tensor in named]
        self.states += [getattr(model.get_submodule(one.layer), one.name) for one in kept]
        self.train(model.training)

    def names(self, prefix: str) -> list[str]:
        """The names of the states, which begin with ``past`` or ``present``."""
        found = [_named(place, prefix) for place in self.places]
        return [*found, *(f"{prefix}_state.{one.place}" for one in self._attributes)]

    def axes(self, past: str, batch: str) -> list[dict[int, str]]:
        """The dynamic axes of the states."""
        of_keys = [_KEYS.fullmatch(place) for place in self.places]
        rows = {0: batch}
        found = [{**rows, 2: past} if keys else rows for keys in of_keys]
        return [*found, *(rows for _ in self._attributes)]

    def forward(
        self, inputs: Mapping[str, torch.Tensor], states: list[torch.Tensor]
    ) -> dict[str, Any]:
        """The logits and the new states."""
        # A model without keys does not relate the mask's tokens to those of the past.
        length = inputs["input_ids"].shape[1]
        mask = inputs.get("attention_mask")
        if mask is not None and not any(map(_KEYS.fullmatch, self.places)):
            inputs = {**inputs, "attention_mask": _last(mask, 1, length)}
        # Layers write into their states.
        own = [state.clone() for state in states]
        given: dict[str, Any] = dict(inputs)
        if self._field is not None:
            given[self._field] = _caches.unpacked(self._tree, own)
        with kept(self.model), _loops.scanned(self.model), _Ends():
            for one, value in zip(self._attributes, own[len(self.places) :], strict=True):
                vars(self.model.get_submodule(one.layer))[one.name] = value
            result: Any = self.model(**given, use_cache=True)
            new: list[torch.Tensor] = []
            if self._field is not None:
                # Some models fill the cache that they get, and do not return it.
                state = getattr(result, self._field, None)
                filled = given[self._field] if state is None else state
                found = dict(_caches.named_tensors(filled))
                new = [found[place] for place in self.places]
            for one in self._attributes:
                new.append(getattr(self.model.get_submodule(one.layer), one.name))
        return {"logits": result.logits, "states": new}


def _named(place: str, prefix: str) -> str:
    if _KEYS.fullmatch(place):
        start = "past_key_values" if prefix == "past" else prefix
        return f"{start}.{place}"
    for pattern, name in _PLACES:
        if pattern.fullmatch(place):
            return prefix + pattern.sub(name, place)
    return f"{prefix}_state.{place}"


def example(
    model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]
) -> tuple[StatefulDecoder | None, Any]:
    """A decoder with states, if the model has more than a cache of keys and values; and the result
    of a run."""
    results: list[Any] = []
    given: dict[str, Any] = dict(inputs)

    def run() -> None:
        with torch.no_grad():
            results.append(cast(Any, model)(**given, use_cache=True))

    with kept(model):
        found = attributes(model, run)
        result = results[0]
        field = field_of(result)
        state = getattr(result, field) if field else None
        if field is None and _FIELDS[0] in inspect.signature(model.forward).parameters:
            field = _FIELDS[0]
            given[field] = state = _caches.empty(model)
            run()
        if not found and (field is None or (field == _FIELDS[0] and is_plain(state))):
            return None, result
        return StatefulDecoder(model, field, state, found), result
