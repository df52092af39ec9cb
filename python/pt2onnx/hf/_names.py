"""Names of the inputs and outputs that are tensors of caches."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .. import _pytree
from .._types import is_items
from . import _caches

#: The steps to a leaf, and its name in a cache.
Place = tuple[list[str], str | None]


def cache_names(
    program: torch.export.ExportedProgram,
) -> tuple[dict[str, str], list[str] | None]:
    """Names of a program's inputs and outputs.

    Returns:
        New names of the inputs that are tensors of caches; and the names of all outputs, if inputs
        or outputs are such tensors.
    """
    if next(_caches.cache_classes(), None) is None:
        return {}, None
    signature = program.graph_signature
    renamed: dict[str, str] = {}
    in_spec, out_spec = _pytree.in_spec(program), _pytree.out_spec(program)
    if in_spec is not None:
        entry = program.module_call_graph[0].signature
        parameters: Sequence[str] = getattr(entry, "forward_arg_names", None) or []
        places = zip(_places(in_spec), signature.user_inputs, strict=False)
        for (steps, inner), name in places:
            if inner is not None and isinstance(name, str):
                # The first step leads to args or kwargs.
                first = [_parameter(step, parameters) for step in steps[1:2]]
                renamed[name] = ".".join([*first, *steps[2:], inner])
    leaves = _places(out_spec) if out_spec is not None else []
    outputs = [o.arg for o in signature.output_specs if o.kind.name == "USER_OUTPUT"]
    of_caches = renamed or any(inner is not None for _, inner in leaves)
    if len(leaves) != len(outputs) or not of_caches:
        return renamed, None
    found: list[str] = []
    for i, ((steps, inner), arg) in enumerate(zip(leaves, outputs, strict=True)):
        # None and texts are not outputs.
        if not isinstance(getattr(arg, "value", 0), (bool, int, float)):
            continue
        if inner is not None:
            kept = (s for s in steps if s != "past_key_values" and not s.isdigit())
            steps = [*kept, "present", inner]
        found.append(".".join(steps) if not steps or not steps[0].isdigit() else f"output_{i}")
    return renamed, found


def _parameter(step: str, parameters: Sequence[str]) -> str:
    known = step.isdigit() and int(step) < len(parameters)
    return parameters[int(step)] if known else step


def _places(spec: _pytree.Spec, steps: tuple[str, ...] = ()) -> list[Place]:
    """The steps to each leaf of a tree: keys, fields and numbers; and the rest of the way inside of
    a cache."""
    parts, base = _pytree.children(spec), next(_caches.cache_classes(), None)
    if base is not None and isinstance(spec.type, type) and issubclass(spec.type, base):
        # For any registration of the class, the leaves are found again in a cache of numbered ones.
        probes: list[object] = [torch.full((1, 1, 1, 1), float(i)) for i in range(spec.num_leaves)]
        inner = _caches.named_tensors(spec.unflatten(probes))
        by_number = {int(leaf): name for name, leaf in inner if leaf.numel() == 1}
        return [(list(steps), by_number.get(i, str(i))) for i in range(spec.num_leaves)]
    if not parts:
        return [(list(steps), None)] * spec.num_leaves
    keys = _keys(spec, len(parts))
    return [
        leaf
        for key, child in zip(keys, parts, strict=True)
        for leaf in _places(child, (*steps, key))
    ]


def _keys(spec: _pytree.Spec, count: int) -> list[str]:
    """The keys of a container, or numbers."""
    context = getattr(spec, "context", None)
    # Dataclasses have a pair: the names of fields that are there, and of those that are None.
    inner = context[0] if is_items(context) and context else None
    for keys in (context, inner):
        if not is_items(keys) or len(keys) != count:
            continue
        if all(isinstance(key, (str, int)) for key in keys):
            return [str(key) for key in keys]
    return [str(at) for at in range(count)]
