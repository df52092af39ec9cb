"""Caches of transformers as trees: tensors, and JSON with their places."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard, cast

import torch
from torch.utils import _pytree

from .._shapes import axis_sizes, is_axes
from .._types import Args, Kwargs, Model, class_of, is_dict, is_items, is_plain_dict

#: A tensor of a cache, after its name.
Named = tuple[str, torch.Tensor]


class _Place(NamedTuple):
    """A tensor of a tree, and its entry there."""

    name: str
    tensor: torch.Tensor
    entry: dict[str, int]


#: The names of the tensors of a layer in models.
_NAMES = {
    "keys": "key",
    "values": "value",
    "self_attention_cache": "decoder",
    "cross_attention_cache": "encoder",
}

#: Layers with a sliding window, and those that keep all tokens.
_WINDOWED = {
    "DynamicSlidingWindowLayer": "DynamicLayer",
    "LinearAttentionAndSlidingWindowAttentionLayer": "LinearAttentionAndFullAttentionLayer",
}

#: The attributes that only layers with a sliding window have.
_OF_WINDOWS = ("sliding_window", "cumulative_length", "_sliding_window_tensor")

#: The attributes in which layers count tokens.
_COUNTS = ("cumulative_length", "cumulative_length_int")


def register() -> None:
    """Makes pytree nodes of the caches of transformers that are not registered yet."""
    for kind in cache_classes():
        if kind in _pytree.SUPPORTED_NODES:
            continue
        _pytree.register_pytree_node(
            kind,
            _flatten,
            _unflatten,
            serialized_type_name=_path(kind),
            flatten_with_keys_fn=_flatten_with_keys,
        )
        with contextlib.suppress(ImportError, AttributeError, ValueError):
            # Only torch before 2.7 needs it.
            fx_pytree = importlib.import_module("torch.fx._pytree")
            fx_pytree.register_pytree_flatten_spec(kind, _flatten_by_spec)


def cache_classes() -> Iterator[type]:
    """The base of all caches, and its subclasses. None if transformers is not loaded."""
    utils = sys.modules.get("transformers.cache_utils")
    waiting: list[type] = [utils.Cache] if utils is not None and hasattr(utils, "Cache") else []
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


def is_cache(value: object) -> TypeGuard[Any]:
    """Whether it is a cache."""
    return isinstance(value, next(cache_classes(), ()))


def empty(model: Any) -> Any:
    """A cache without tokens for a model."""
    return sys.modules["transformers.cache_utils"].DynamicCache(config=model.config)


def named_tensors(cache: object) -> list[Named]:
    """The tensors of a cache with their names: ``0.key``."""
    return packed(cache)[1]


def packed(value: object) -> tuple[object, list[Named]]:
    """A value as a tree without its tensors, and these with their names, layer by layer as
    optimum takes them: the keys of the decoder and the encoder of a layer follow each other."""
    places: list[_Place] = []
    tree = _packed(value, "", places)
    places.sort(key=lambda place: _layer(place.name))
    for at, place in enumerate(places):
        place.entry["tensor"] = at
    return tree, [(place.name, place.tensor) for place in places]


def _layer(name: str) -> int:
    first = name.partition(".")[0]
    return int(first) if first.isdigit() else -1


def _flatten(cache: object) -> tuple[list[torch.Tensor], str]:
    tree, leaves = packed(cache)
    return [leaf for _, leaf in leaves], json.dumps(tree)


def _flatten_by_spec(cache: object, _: object) -> list[torch.Tensor]:
    return _flatten(cache)[0]


def _flatten_with_keys(
    cache: object,
) -> tuple[list[tuple[_pytree.KeyEntry, torch.Tensor]], str]:
    tree, leaves = packed(cache)
    key: Callable[[str], _pytree.KeyEntry] = cast(Any, _pytree).MappingKey
    return [(key(name), leaf) for name, leaf in leaves], json.dumps(tree)


def _unflatten(leaves: Iterable[object], context: str) -> object:
    return unpacked(json.loads(context), list(leaves))


def _packed(value: object, name: str, places: list[_Place]) -> object:
    """A value without its tensors, which are added to ``places`` with their names.

    Raises:
        TypeError: The value has no attributes.
    """
    if isinstance(value, torch.Tensor):
        places.append(_Place(name, value, {}))
        return places[-1].entry
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, torch.Stream)):
        # Sizes that layers keep when they are filled.
        return None
    if isinstance(value, (torch.dtype, torch.device)):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, type):
        return {"class": _path(value)}
    if is_items(value):
        return [_packed(item, _joined(name, str(i)), places) for i, item in enumerate(value)]
    if is_plain_dict(value):
        items = value.items()
        return {
            "items": [[key, _packed(item, _joined(name, str(key)), places)] for key, item in items]
        }
    kind = class_of(value)
    attributes: dict[str, object] | None = getattr(value, "__dict__", None)
    if attributes is None:
        path = f"{kind.__module__}.{kind.__qualname__}"
        raise TypeError(f"pt2onnx cannot export a cache that holds a {path}")
    if kind.__name__ in _WINDOWED:
        # The model keeps all tokens: the start of the window would be fixed when it is captured.
        # Its mask hides what is outside.
        kind = getattr(sys.modules[kind.__module__], _WINDOWED[kind.__name__])
        attributes = {key: attributes[key] for key in attributes if key not in _OF_WINDOWS}
    found = [
        [key, _packed(item, _joined(name, _NAMES.get(key, key)), places)]
        for key, item in attributes.items()
    ]
    return {"object": _path(kind), "items": found}


def _joined(name: str, step: str) -> str:
    # Layers are named by their numbers alone; the number comes first in encoder-decoder caches.
    if step == "layers":
        return name
    first, _, rest = name.partition(".")
    if first in ("decoder", "encoder") and not rest and step.isdigit():
        return f"{step}.{first}"
    return f"{name}.{step}" if name else step


def unpacked(packed: Any, leaves: Sequence[object]) -> object:
    """The reverse of ``packed``."""
    if isinstance(packed, list):
        return [unpacked(item, leaves) for item in cast(list[object], packed)]
    if not isinstance(packed, dict):
        return packed
    entries = cast(dict[str, Any], packed)
    if "tensor" in entries:
        return leaves[entries["tensor"]]
    if "torch" in entries:
        found = getattr(torch, entries["torch"], None)
        return found if isinstance(found, torch.dtype) else torch.device(entries["torch"])
    if "class" in entries:
        return _found(entries["class"])
    items = {key: unpacked(item, leaves) for key, item in entries["items"]}
    if "object" not in entries:
        return items
    kind = _found(entries["object"])
    made: object = object.__new__(kind)
    vars(made).update(items)
    return made


def _path(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _found(path: str) -> type[object]:
    module, _, name = path.partition(":")
    found: Any = importlib.import_module(module)
    return cast(type[object], functools.reduce(getattr, name.split("."), found))


def broadcast_shapes(model: Model, args: Args, kwargs: Kwargs, shapes: object) -> object:
    """Dynamic shapes with an entry for each tensor of a cache, where there is one for the cache.

    Args:
        model: The module.
        args: The positional arguments.
        kwargs: The keyword arguments.
        shapes: The dynamic shapes.

    Raises:
        ValueError: A cache cannot be an example.
    """
    if next(cache_classes(), None) is None:
        return shapes
    parameters = list(inspect.signature(getattr(model, "forward", model)).parameters)
    by_name = {**dict(zip(parameters, args, strict=False)), **kwargs}
    for name, value in by_name.items():
        if is_cache(value):
            _check(name, value)
    if isinstance(shapes, dict):
        given = cast(dict[str, object], shapes)
        return {name: _broadcast(by_name.get(name), entry) for name, entry in given.items()}
    values = (*args, *kwargs.values())
    if is_items(shapes) and len(values) == len(shapes):
        pairs = zip(values, shapes, strict=True)
        kind = cast(Callable[..., object], type(shapes))
        return kind(_broadcast(value, entry) for value, entry in pairs)
    return shapes


def _broadcast(cache: object, entry: object) -> object:
    if not is_cache(cache):
        return entry
    halves = is_dict(entry) and bool(entry) and entry.keys() <= _NAMES.keys() - {"keys", "values"}
    if entry is not None and not halves and not is_axes(entry):
        return entry
    names = {id(leaf): name for name, leaf in named_tensors(cache)}

    def axes(leaf: torch.Tensor) -> object:
        found = entry
        if halves and is_dict(entry):
            is_cross = ".encoder." in names[id(leaf)]
            found = entry.get("cross_attention_cache" if is_cross else "self_attention_cache")
        if is_dict(found):
            sizes = cast(Iterator[tuple[int, object]], axis_sizes(found))
            return {axis: size for axis, size in sizes if axis < leaf.dim()}
        # A list of None would be the axes of one tensor.
        return {} if found is None else found

    leaves = _pytree.SUPPORTED_NODES[type(cache)].flatten_fn(cache)[0]
    mapped: object = _pytree.tree_map(axes, leaves)
    return mapped


def _check(name: str, cache: Any) -> None:
    """Raises ValueError for layers that would work at the captured position only, because they
    count tokens in a number of Python."""
    if hasattr(cache, "self_attention_cache"):
        _check(name, cache.self_attention_cache)
        _check(name, cache.cross_attention_cache)
        return
    own = _pytree.SUPPORTED_NODES[type(cache)].flatten_fn is _flatten
    for i, layer in enumerate(getattr(cache, "layers", ())):
        kind, keys = type(layer).__name__, getattr(layer, "keys", None)
        if not any(type(getattr(layer, count, None)) is int for count in _COUNTS):
            continue
        if kind != "DynamicSlidingWindowLayer":
            raise ValueError(
                f"{name}: layer {i} is a {kind}, which counts tokens in a number of Python: give a "
                "DynamicCache"
            )
        if not own:
            raise ValueError(
                f"{name}: transformers registered {type(cache).__name__} first, without support "
                f"for its {kind}: call pt2onnx.hf.register() before"
            )
        if keys is not None and layer.cumulative_length != keys.shape[-2]:
            raise ValueError(
                f"{name}: layer {i} has had {layer.cumulative_length} tokens and keeps "
                f"{keys.shape[-2]} of them: give a cache with fewer tokens than its sliding window "
                f"of {layer.sliding_window}"
            )
