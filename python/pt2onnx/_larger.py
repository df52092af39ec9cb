"""Examples whose dynamic dimensions of size 0 or 1 are larger or static, and whether programs of two examples give the same sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: The size that dimensions have instead of 0 and 1.
LARGER = 5


def larger(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with larger dynamic dimensions in place of those that are 0 or 1; rows are repeated."""
    import torch
    from torch.export.dynamic_shapes import _combine_args, _tree_map_with_path
    from torch.utils import _pytree

    made: dict[int, Any] = {}

    def grow(_: Any, leaf: Any, axes: Any) -> None:
        if not isinstance(leaf, torch.Tensor) or not axes:
            return
        grown = leaf
        for axis, size in axes.items() if isinstance(axes, dict) else enumerate(axes):
            count = leaf.shape[axis]
            if size is not None and not isinstance(size, int) and "STATIC" not in str(size) and count < 2:
                wanted = min(getattr(size, "max", None) or LARGER, LARGER)
                shape = [wanted if at == axis % leaf.ndim else old for at, old in enumerate(grown.shape)]
                grown = grown.expand(shape).clone() if count else grown.new_zeros(shape)
        made[id(leaf)] = grown

    inputs = _combine_args(model, args, kwargs)
    _tree_map_with_path(grow, inputs if isinstance(shapes, dict) else type(shapes)(inputs.values()), shapes, tree_name="inputs")
    found: tuple[tuple[Any, ...], dict[str, Any]] = _pytree.tree_map(lambda leaf: made.get(id(leaf), leaf), (args, kwargs))
    return found


def same_results(one: torch.export.ExportedProgram, other: torch.export.ExportedProgram) -> bool:
    """Whether the results of another program have the sizes of those of this one, at the sizes of its example."""

    def shapes(program: torch.export.ExportedProgram, inputs: bool) -> list[Any]:
        output = next(node for node in reversed(program.graph.nodes) if node.op == "output")
        nodes = [node for node in program.graph.nodes if node.op == "placeholder"] if inputs else output.all_input_nodes
        values = [node.meta.get("val") for node in nodes]
        return [value.shape for value in values if hasattr(value, "shape")]

    def hints(shape: Any) -> list[int]:
        return [size if isinstance(size, int) else int(size.node.hint) for size in shape]

    pairs = zip(shapes(one, True), shapes(other, True))
    sizes = {b.node.expr: a for given, shape in pairs for a, b in zip(hints(given), shape) if not isinstance(b, int)}
    results = [[b if isinstance(b, int) else b.node.expr.xreplace(sizes) for b in shape] for shape in shapes(other, False)]
    return [hints(shape) for shape in shapes(one, False)] == results


def static(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> Any:
    """Dynamic shapes without dimensions that are 0 or 1 in the example."""
    import torch
    from torch.export.dynamic_shapes import _combine_args, _tree_map_with_path

    def static(_: Any, leaf: Any, axes: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not axes:
            return axes
        pairs = axes.items() if isinstance(axes, dict) else enumerate(axes)
        return {axis: size for axis, size in pairs if leaf.shape[axis] > 1 and size is not None}

    inputs = _combine_args(model, args, kwargs)
    if not isinstance(shapes, dict):
        inputs = type(shapes)(inputs.values())
    return _tree_map_with_path(static, inputs, shapes, tree_name="inputs")
