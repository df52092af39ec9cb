"""Trees of containers, as torch.export takes arguments apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

import torch
from torch.utils import _pytree

from ._types import is_items


class Spec(Protocol):
    """The structure of a tree: a TreeSpec of any version of torch."""

    type: type | None
    context: object
    num_leaves: int

    def unflatten(self, leaves: list[object]) -> object: ...


def leaves(tree: object) -> list[object]:
    """The leaves of a tree, in order."""
    return list(_pytree.tree_leaves(tree))


def flatten(
    tree: object, is_leaf: Callable[[object], bool] | None = None
) -> tuple[list[object], Spec]:
    """The leaves and the structure of a tree."""
    found, spec = _pytree.tree_flatten(tree, is_leaf)
    return found, cast(Spec, spec)


def is_registered(value: object) -> bool:
    """Whether its class is a node of trees."""
    return type(value) in _pytree.SUPPORTED_NODES


def one_level(tree: object) -> tuple[list[tuple[object, object]], Spec]:
    """The children of a node with their keys, and its structure."""

    # torch's function that flattens refers to itself and to this one until garbage is collected.
    # The tree, which may be large, is not kept as long.
    root = id(tree)

    def is_child(part: object) -> bool:
        return id(part) != root

    try:
        pairs, spec = _pytree.tree_flatten_with_path(tree, is_child)
    except ValueError:
        # A class that was registered without keys.
        found, own = flatten(tree, is_child)
        return list(enumerate(found)), own
    keys = [_key(path[0], at) for at, (path, _) in enumerate(pairs)]
    parts = (part for _, part in pairs)
    return list(zip(keys, parts, strict=True)), cast(Spec, spec)


def _key(entry: object, at: int) -> object:
    """The key of a child, which is that of a dict, a name or a number."""
    names = ("key", "name", "idx")
    return next((getattr(entry, name) for name in names if hasattr(entry, name)), at)


def unflatten(leaves: list[object], spec: Spec) -> object:
    """A tree of this structure."""
    return _pytree.tree_unflatten(leaves, cast(_pytree.TreeSpec, spec))


def transform(function: Callable[[object], object], tree: object) -> object:
    """The tree with other leaves."""
    return _pytree.tree_map(function, tree)


def detached(tree: object) -> object:
    """The tree with tensors without gradients."""
    return transform(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, tree)


def children(spec: Spec) -> list[Spec]:
    """The children of a TreeSpec: a method in newer versions, an attribute in older ones."""
    found = getattr(spec, "children", None)
    specs: object = found() if callable(found) else getattr(spec, "children_specs", ())
    return list(cast(Iterable[Spec], specs))


def keywords(spec: Spec | None) -> list[str]:
    """The keywords of a program's arguments, in its order; none if they are unknown."""
    parts = children(spec) if spec is not None else []
    context = getattr(parts[1], "context", None) if len(parts) == 2 else None
    return [str(name) for name in context] if is_items(context) else []


def in_spec(program: torch.export.ExportedProgram) -> Spec | None:
    """The structure of a program's arguments."""
    return cast("Spec | None", program.call_spec.in_spec)


def out_spec(program: torch.export.ExportedProgram) -> Spec | None:
    """The structure of a program's results."""
    return cast("Spec | None", program.call_spec.out_spec)


def decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program with functional ops only, and without tensor subclasses."""
    made: torch.export.ExportedProgram = cast(Any, program).run_decompositions({})
    return made


def range_constraints(program: torch.export.ExportedProgram) -> dict[Any, Any]:
    """The range of each symbol of the program."""
    ranges: dict[Any, Any] = cast(Any, program).range_constraints
    return ranges
