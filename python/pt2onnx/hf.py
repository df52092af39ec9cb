"""Models of transformers: their caches as inputs and outputs, and the files that text generation needs.

``pt2onnx.export`` takes modules whose arguments or results hold caches (``DynamicCache``, ``StaticCache``, ``EncoderDecoderCache`` and
their subclasses) without further ado. Unless names are given, the tensors of a cache are called as optimum calls them:

* inputs: ``past_key_values.0.key``, ``past_key_values.0.value``, ``past_key_values.1.key``, ...
* outputs: ``present.0.key``, ``present.0.value``, ...; all others after their keys: ``logits``
* of encoder-decoder models: ``past_key_values.0.decoder.key``, ``past_key_values.0.encoder.key``, ...

In ``dynamic_shapes``, one entry stands for all tensors of a cache::

    dynamic_shapes={"input_ids": {0: "batch", 1: "length"}, "past_key_values": {0: "batch", 2: "past"}}

``pt2onnx.hf.export(model, folder)`` needs no arguments at all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from ._program import ONNXProgram

__all__ = ["Part", "export", "parts", "register"]

#: What the tensors of a layer are called in models.
_NAMES = {"keys": "key", "values": "value", "self_attention_cache": "decoder", "cross_attention_cache": "encoder"}

#: What dimensions are called in models, as optimum calls them where it names them.
_BATCH, _LENGTH, _PAST, _TOTAL = "batch_size", "sequence_length", "past_sequence_length", "total_sequence_length"
_ENCODER = "encoder_sequence_length"


def register() -> None:
    """Makes pytree nodes of the caches of transformers, so that ``torch.export`` takes them. Those that are registered already, by
    transformers or by others, stay as they are. ``pt2onnx.export`` calls it if transformers is loaded."""
    from torch.utils import _pytree

    for kind in _cache_classes():
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
            from torch.fx import _pytree as fx_pytree

            fx_pytree.register_pytree_flatten_spec(kind, lambda cache, _: _flatten(cache)[0])


def _cache_classes() -> Iterator[type]:
    """The base of all caches, and the classes that are made from it."""
    utils: Any = sys.modules.get("transformers.cache_utils")
    waiting = [utils.Cache] if hasattr(utils, "Cache") else []
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


def _is_cache(value: Any) -> bool:
    return isinstance(value, next(_cache_classes(), ()))


# Caches as trees: tensors, and JSON that says where they stand.


def _flatten(cache: Any) -> tuple[list[Any], str]:
    leaves: list[tuple[str, Any]] = []
    context = json.dumps(_packed(cache, "", leaves))
    return [leaf for _, leaf in leaves], context


def _flatten_with_keys(cache: Any) -> tuple[list[tuple[Any, Any]], str]:
    from torch.utils import _pytree

    leaves: list[tuple[str, Any]] = []
    context = json.dumps(_packed(cache, "", leaves))
    return [(_pytree.MappingKey(name), leaf) for name, leaf in leaves], context


def _unflatten(leaves: Any, context: str) -> Any:
    return _unpacked(json.loads(context), iter(leaves))


def _packed(value: Any, name: str, leaves: list[tuple[str, Any]]) -> Any:
    """What a value is apart from its tensors, which are added to ``leaves`` with their names."""
    import torch

    if isinstance(value, torch.Tensor):
        leaves.append((name, value))
        return {"tensor": None}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, torch.Stream)):
        # Sizes that layers write down when they are filled.
        return None
    if isinstance(value, (torch.dtype, torch.device)):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, type):
        return {"class": _path(value)}
    if isinstance(value, (list, tuple)):
        return [_packed(item, _joined(name, str(i)), leaves) for i, item in enumerate(value)]
    if type(value) is dict:
        return {"items": [[key, _packed(item, _joined(name, str(key)), leaves)] for key, item in value.items()]}
    kind, attributes = type(value), getattr(value, "__dict__", None)
    if attributes is None:
        raise TypeError(f"pt2onnx cannot export a cache that holds a {kind.__module__}.{kind.__qualname__}")
    if kind.__name__ == "DynamicSlidingWindowLayer":
        # The model keeps all tokens: where the window starts would be fixed when it is captured. Its mask hides what is outside.
        kind = sys.modules[kind.__module__].DynamicLayer
        known = ("keys", "values", "is_initialized", "dtype", "device")
        attributes = {key: attributes[key] for key in known if key in attributes}
    found = [[key, _packed(item, _joined(name, _NAMES.get(key, key)), leaves)] for key, item in attributes.items()]
    return {"object": _path(kind), "items": found}


def _joined(name: str, step: str) -> str:
    # Layers are named by their numbers alone; of encoder-decoder caches the number comes first.
    if step == "layers":
        return name
    first, _, rest = name.partition(".")
    if first in ("decoder", "encoder") and not rest and step.isdigit():
        return f"{step}.{first}"
    return f"{name}.{step}" if name else step


def _unpacked(packed: Any, leaves: Iterator[Any]) -> Any:
    """The reverse of ``_packed``."""
    if isinstance(packed, list):
        return [_unpacked(item, leaves) for item in packed]
    if not isinstance(packed, dict):
        return packed
    if "tensor" in packed:
        return next(leaves)
    if "torch" in packed:
        import torch

        found = getattr(torch, packed["torch"], None)
        return found if isinstance(found, torch.dtype) else torch.device(packed["torch"])
    if "class" in packed:
        return _found(packed["class"])
    items = {key: _unpacked(item, leaves) for key, item in packed["items"]}
    if "object" not in packed:
        return items
    kind = _found(packed["object"])
    made = kind.__new__(kind)
    made.__dict__.update(items)
    return made


def _path(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _found(path: str) -> Any:
    module, _, name = path.partition(":")
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


# What export asks for.


def spread(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> Any:
    """Dynamic shapes with an entry for each tensor of a cache, where there is one entry for the cache.

    Raises ValueError for caches that cannot be examples.
    """
    parameters = list(inspect.signature(getattr(model, "forward", model)).parameters)
    by_name = {**dict(zip(parameters, args)), **kwargs}
    for name, value in by_name.items():
        if _is_cache(value):
            _checked(name, value)
    if isinstance(shapes, dict):
        return {name: _spread(by_name.get(name), entry) for name, entry in shapes.items()}
    if isinstance(shapes, (list, tuple)):
        values = (*args, *kwargs.values())
        return type(shapes)(_spread(value, entry) for value, entry in zip(values, shapes)) if len(values) == len(shapes) else shapes
    return shapes


def _spread(cache: Any, entry: Any) -> Any:
    from torch.utils import _pytree

    from ._shapes import _is_axes

    if not _is_cache(cache):
        return entry
    halves = isinstance(entry, dict) and entry.keys() <= {"self_attention_cache", "cross_attention_cache"} and bool(entry)
    if entry is not None and not halves and not _is_axes(entry):
        return entry
    leaves: list[tuple[str, Any]] = []
    _packed(cache, "", leaves)
    names = {id(leaf): name for name, leaf in leaves}

    def axes(leaf: Any) -> Any:
        found = entry
        if halves and isinstance(entry, dict):
            found = entry.get("cross_attention_cache" if ".encoder." in names[id(leaf)] else "self_attention_cache")
        if isinstance(found, dict):
            return {axis: size for axis, size in found.items() if axis < leaf.dim()}
        # A list of None would be the axes of one tensor.
        return {} if found is None else found

    return _pytree.tree_map(axes, _pytree.SUPPORTED_NODES[type(cache)].flatten_fn(cache)[0])


def _checked(name: str, cache: Any) -> None:
    """Raises ValueError for layers that would work at the captured position only, because they count tokens in a number of Python."""
    from torch.utils import _pytree

    if hasattr(cache, "self_attention_cache"):
        _checked(name, cache.self_attention_cache)
        return _checked(name, cache.cross_attention_cache)
    own = _pytree.SUPPORTED_NODES[type(cache)].flatten_fn is _flatten
    for i, layer in enumerate(getattr(cache, "layers", ())):
        kind, keys = type(layer).__name__, getattr(layer, "keys", None)
        counts = [n for n in ("cumulative_length", "cumulative_length_int") if type(getattr(layer, n, None)) is int]
        if not counts:
            continue
        if kind != "DynamicSlidingWindowLayer":
            raise ValueError(f"{name}: layer {i} is a {kind}, which counts tokens in a number of Python: give a DynamicCache")
        if not own:
            raise ValueError(
                f"{name}: transformers registered {type(cache).__name__} first, without support for its {kind}: call "
                "pt2onnx.hf.register() before"
            )
        if keys is not None and layer.cumulative_length != keys.shape[-2]:
            raise ValueError(
                f"{name}: layer {i} has had {layer.cumulative_length} tokens and keeps {keys.shape[-2]} of them: give a cache with fewer "
                f"tokens than its sliding window of {layer.sliding_window}"
            )


def names(program: torch.export.ExportedProgram) -> tuple[dict[str, str], list[str] | None]:
    """New names of the inputs that are tensors of caches; and the names of all outputs, if inputs or outputs are."""
    spec, signature = program.call_spec, program.graph_signature
    renamed: dict[str, str] = {}
    if spec.in_spec is not None:
        entry = program.module_call_graph[0].signature
        parameters = getattr(entry, "forward_arg_names", None) or []
        for (steps, inner), name in zip(_leaves(spec.in_spec), signature.user_inputs):
            if inner is not None and isinstance(name, str):
                # The first step leads to args or kwargs.
                steps = [parameters[int(s)] if s.isdigit() and int(s) < len(parameters) else s for s in steps[1:2]] + steps[2:]
                renamed[name] = ".".join([*steps, inner])
    leaves = _leaves(spec.out_spec) if spec.out_spec is not None else []
    outputs = [output.arg for output in signature.output_specs if output.kind.name == "USER_OUTPUT"]
    if len(leaves) != len(outputs) or (not renamed and all(inner is None for _, inner in leaves)):
        return renamed, None
    found = []
    for i, ((steps, inner), arg) in enumerate(zip(leaves, outputs)):
        # None and texts are no outputs.
        if isinstance(getattr(arg, "value", 0), (bool, int, float)):
            if inner is not None:
                steps = [*(s for s in steps if s != "past_key_values" and not s.isdigit()), "present", inner]
            found.append(".".join(steps) if not steps or not steps[0].isdigit() else f"output_{i}")
    return renamed, found


def _leaves(spec: Any, steps: tuple[str, ...] = ()) -> list[tuple[list[str], str | None]]:
    """The steps to each leaf of a tree: keys, fields and numbers; and the rest of the way inside of a cache."""
    from ._handover import children

    parts, base = children(spec), next(_cache_classes(), ())
    if isinstance(spec.type, type) and issubclass(spec.type, base):
        import torch

        # Whoever registered the class, the leaves are found again in a cache made of numbered ones.
        probes = [torch.full((1, 1, 1, 1), float(i)) for i in range(spec.num_leaves)]
        inner: list[tuple[str, Any]] = []
        _packed(spec.unflatten(probes), "", inner)
        by_number = {int(leaf): name for name, leaf in inner if leaf.numel() == 1}
        return [(list(steps), by_number.get(i, str(i))) for i in range(spec.num_leaves)]
    if not parts:
        return [(list(steps), None)] * spec.num_leaves
    context = getattr(spec, "context", None)
    # Dataclasses have a pair: the names of fields that are there, and of those that are None.
    for keys in (context, context[0] if isinstance(context, (list, tuple)) and context else None):
        if isinstance(keys, (list, tuple)) and len(keys) == len(parts) and all(isinstance(key, (str, int)) for key in keys):
            break
    else:
        keys = range(len(parts))
    return [leaf for key, child in zip(keys, parts) for leaf in _leaves(child, (*steps, str(key)))]


# Text generation.


@dataclasses.dataclass(frozen=True)
class Part:
    """A model of those that a text generator needs: what ``pt2onnx.export`` takes."""

    model: torch.nn.Module
    kwargs: dict[str, Any]
    dynamic_shapes: dict[str, Any]
    output_names: str | None = None


def parts(model: torch.nn.Module, *, batch: int = 2, length: int = 3, past: int = 4) -> dict[str, Part]:
    """The models that text generation with a model of transformers needs, by the names that optimum gives to their files.

    A decoder gives one, ``"model"``. It takes ``input_ids`` and ``attention_mask``, ``position_ids`` if the model has them, and
    ``past_key_values``, which has length 0 at the first call; it returns ``logits`` and ``present``. An encoder with decoder gives
    three: ``"encoder_model"``, ``"decoder_model"`` for the first token, which computes the cache of the encoder's states, and
    ``"decoder_with_past_model"`` for all others.

    The examples have ``batch`` rows, ``length`` tokens and ``past`` tokens before them; the model runs once to make the cache. All of
    these sizes are dynamic. Raises ValueError for models that do not take ``input_ids``.
    """
    register()
    if getattr(model, "main_input_name", "input_ids") != "input_ids":
        raise ValueError(f"parts() is for text; {type(model).__name__} takes {model.main_input_name}: call pt2onnx.export for each part")
    # transformers adds attributes that a module does not have.
    config: Any = model.config
    device: Any = model.device
    if config.is_encoder_decoder:
        return _encoder_decoder(model, batch, length, past)
    import torch

    with torch.no_grad():
        cache = model(input_ids=torch.zeros(batch, past, dtype=torch.int64, device=device), use_cache=True).past_key_values
    kwargs: dict[str, Any] = {
        "input_ids": torch.zeros(batch, length, dtype=torch.int64, device=device),
        "attention_mask": torch.ones(batch, past + length, dtype=torch.int64, device=device),
    }
    shapes: dict[str, Any] = {"input_ids": {0: _BATCH, 1: _LENGTH}, "attention_mask": {0: _BATCH, 1: _TOTAL}}
    if "position_ids" in inspect.signature(model.forward).parameters:
        kwargs["position_ids"] = torch.arange(past, past + length, device=device).expand(batch, length).contiguous()
        shapes["position_ids"] = {0: _BATCH, 1: _LENGTH}
    kwargs |= {"past_key_values": cache, "use_cache": True}
    shapes |= {"past_key_values": {0: _BATCH, 2: _PAST}, "use_cache": None}
    return {"model": Part(model, kwargs, shapes)}


def _encoder_decoder(model: Any, batch: int, length: int, past: int) -> dict[str, Part]:
    import torch

    class Decoder(torch.nn.Module):
        """The decoder with its head."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.train(model.training)

        def forward(
            self, input_ids: Any, encoder_attention_mask: Any, encoder_hidden_states: Any = None, past_key_values: Any = None
        ) -> dict[str, Any]:
            first = encoder_hidden_states is not None
            if not first:
                # The cache has what the decoder needs of them, but they must be there.
                shape = (*encoder_attention_mask.shape, model.config.hidden_size)
                encoder_hidden_states = torch.zeros(shape, dtype=model.dtype, device=model.device)
            result = self.model(
                attention_mask=encoder_attention_mask,
                decoder_input_ids=input_ids,
                encoder_outputs=(encoder_hidden_states,),
                past_key_values=past_key_values,
                use_cache=True,
            )
            cache = result.past_key_values
            if first:
                return {"logits": result.logits, "past_key_values": cache}
            # The other half does not change.
            layers = enumerate(cache.self_attention_cache.layers)
            present = {str(i): {"decoder": {"key": layer.keys, "value": layer.values}} for i, layer in layers}
            return {"logits": result.logits, "present": present}

    device = model.device
    ids = torch.zeros(batch, length, dtype=torch.int64, device=device)
    mask = torch.ones_like(ids)
    with torch.no_grad():
        result = model(input_ids=ids, attention_mask=mask, decoder_input_ids=ids.new_zeros(batch, past), use_cache=True)
    rows, encoded = {0: _BATCH, 1: _LENGTH}, {0: _BATCH, 1: _ENCODER}
    encoder = {"input_ids": ids, "attention_mask": mask}
    decoder = {"input_ids": ids.new_zeros(batch, length), "encoder_attention_mask": mask}
    shapes = {"input_ids": rows, "encoder_attention_mask": encoded}
    cache = {"self_attention_cache": {0: _BATCH, 2: _PAST}, "cross_attention_cache": {0: _BATCH, 2: _ENCODER}}
    made = Decoder()
    return {
        "encoder_model": Part(model.get_encoder(), encoder, {"input_ids": rows, "attention_mask": rows}, "from-tree"),
        "decoder_model": Part(
            made,
            {**decoder, "encoder_hidden_states": result.encoder_last_hidden_state},
            {**shapes, "encoder_hidden_states": encoded},
        ),
        "decoder_with_past_model": Part(
            made, {**decoder, "past_key_values": result.past_key_values}, {**shapes, "past_key_values": cache}
        ),
    }


def export(model: torch.nn.Module, folder: str | os.PathLike[str], **options: Any) -> dict[str, ONNXProgram]:
    """Exports a model of transformers for text generation, as ``optimum-cli export onnx --task text-generation-with-past`` does: the
    files of ``parts`` and ``config.json``, in this folder.

    The options are those of ``pt2onnx.export``. Returns the models by the names of their files, without ``.onnx``. Raises what
    ``pt2onnx.export`` and ``parts`` raise.
    """
    from ._export import export as export_one

    os.makedirs(folder, exist_ok=True)
    made = {}
    for name, part in parts(model).items():
        given = {"output_names": part.output_names, "dynamic_shapes": part.dynamic_shapes, **options}
        made[name] = export_one(part.model, (), os.path.join(folder, f"{name}.onnx"), kwargs=part.kwargs, **given)
    model.config.save_pretrained(folder)  # type: ignore[union-attr, operator]
    return made
