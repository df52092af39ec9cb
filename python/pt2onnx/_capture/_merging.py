"""One model of captures at several sizes, in which conditions on sizes choose between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .._errors import native_errors
from .._program import ONNXProgram
from .._pt2onnx import choose
from .._sources import ProgramSource, Source
from ._regions import Explorer
from ._torch_export import Captured


def merged(
    explorer: Explorer,
    source: Callable[[Captured], ProgramSource],
    translate: Callable[[Source], ONNXProgram],
) -> ONNXProgram | None:
    """The model of the regions; None if there are none, or if it is not right.

    Args:
        explorer: The regions.
        source: The program of a capture.
        translate: Translates a source.

    Raises:
        OnnxExporterError: A program cannot be translated, or they cannot be merged.
    """
    if not explorer.regions:
        return None
    made: list[ONNXProgram] = []
    for region in explorer.models:
        own = source(region.captured)
        if made:
            own = dataclasses.replace(own, names=(made[0].input_names, made[0].output_names))
        made.append(translate(own))
    sizes = explorer.coverage.sizes
    inputs = explorer.coverage.inputs(made[0])
    dims = {
        name: (inputs[path], axis)
        for path, symbols in sizes.symbols.items()
        for axis, name in enumerate(symbols)
        if name is not None
    }
    ranges = {name: (dim.low, dim.high) for name, dim in sizes.dims.items()}
    refusal = f"the model has no branch for these sizes of {', '.join(sizes.names().values())}"
    with native_errors():
        programs = [one._native for one in made]
        native = choose(programs, explorer.tree(refusal[:_LONGEST]), dims, ranges, explorer.tested)
    program = ONNXProgram(native, origin=made[0]._origin)
    renamed: dict[Any, str] = {name: text for name, text in sizes.names().items() if name != text}
    if renamed:
        program.rename_axes(renamed)
    return program if explorer.is_right(program) else None


#: The characters of the name of a node.
_LONGEST = 190
