"""Captures at several sizes as one model, in which conditions on sizes choose between them, or as
one model each.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

from .._conditions import as_text
from .._errors import OnnxExporterError, native_errors
from .._program import ONNXProgram
from .._pt2onnx import choose
from .._pt2onnx import split as split_native
from .._sources import ProgramSource, Source
from ._regions import Regions
from ._torch_export import Captured

#: The characters of the name of a node.
_LONGEST = 190

#: The program of a capture.
SourceOf = Callable[[Captured], ProgramSource]

#: Translates a source.
Translate = Callable[[Source], ONNXProgram]


#: A way to make one model of regions.
Join = Callable[[Regions, SourceOf, Translate], ONNXProgram | None]


def joined(
    join: Join, regions: Regions, source: SourceOf, translate: Translate
) -> ONNXProgram | None:
    """The model of ``merged`` or ``split``; None also if no model can compute the conditions."""
    with contextlib.suppress(OnnxExporterError, ValueError):
        return join(regions, source, translate)
    return None


def merged(regions: Regions, source: SourceOf, translate: Translate) -> ONNXProgram | None:
    """The model of the regions; None if there are none, or if it is not right.

    Args:
        regions: The regions.
        source: The program of a capture.
        translate: Translates a source.

    Raises:
        OnnxExporterError: A program cannot be translated, or they cannot be merged.
    """
    if not regions.models:
        return None
    made = _translated(regions, source, translate)
    sizes = regions.coverage.sizes
    with native_errors():
        programs = [one._native for one in made]
        tree = regions.tree(_refusal(regions))
        native = choose(programs, tree, *_sizes(regions, made[0]), regions.tested)
    program = ONNXProgram(native, origin=made[0]._origin)
    renamed: dict[Any, str] = {name: text for name, text in sizes.names().items() if name != text}
    if renamed:
        program.rename_axes(renamed)
    return program if regions.is_right(program) else None


def split(regions: Regions, source: SourceOf, translate: Translate) -> ONNXProgram | None:
    """The model of the example, whose ``regions`` are the models of all regions; None if there are
    none, or if one is not right. The parameters are those of ``merged``.

    Raises:
        OnnxExporterError: A program cannot be translated.
    """
    if not regions.models:
        return None

    def within(captured: Captured) -> ProgramSource:
        own = source(captured)
        region = next(one for one in regions.models if one.captured is captured)
        asked = regions.coverage.asked([regions.region(region)])
        return dataclasses.replace(own, asked=asked)

    made = _translated(regions, within, translate)
    with native_errors():
        programs = [one._native for one in made]
        tree = regions.tree(_refusal(regions))
        found = split_native(programs, tree, *_sizes(regions, made[0]))
    sizes = regions.coverage.sizes
    models: list[tuple[bool, ONNXProgram]] = []
    for at, _, native in sorted(found, key=lambda one: one[0]):
        model, region = ONNXProgram(native, origin=made[at]._origin), regions.models[at]
        model.conditions = as_text(regions.region(region).expr, sizes.names())
        if not regions.is_right(model, region):
            return None
        models.append((regions.at(sizes.example) is region, model))
    # The model of the example comes first.
    ordered = [model for _, model in sorted(models, key=lambda one: not one[0])]
    ordered[0].regions = tuple(ordered)
    return ordered[0]


def _translated(regions: Regions, source: SourceOf, translate: Translate) -> list[ONNXProgram]:
    """The models of the regions, with the names of inputs and outputs of the first."""
    made: list[ONNXProgram] = []
    for region in regions.models:
        own = source(region.captured)
        if made:
            own = dataclasses.replace(own, names=(made[0].input_names, made[0].output_names))
        made.append(translate(own))
    return made


def _refusal(regions: Regions) -> str:
    sizes = ", ".join(regions.coverage.sizes.names().values())
    return f"the model has no branch for these sizes of {sizes}"[:_LONGEST]


def _sizes(
    regions: Regions, made: ONNXProgram
) -> tuple[dict[str, tuple[str, int]], dict[str, tuple[int, int | None]]]:
    """The inputs and axes of the sizes, and their ranges."""
    sizes = regions.coverage.sizes
    inputs = regions.coverage.inputs(made)
    dims = {
        name: (inputs[path], axis)
        for path, symbols in sizes.symbols.items()
        for axis, name in enumerate(symbols)
        if name is not None
    }
    return dims, {name: (dim.low, dim.high) for name, dim in sizes.dims.items()}
