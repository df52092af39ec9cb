"""Whether a capture holds at all sizes that dynamic shapes ask for."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import torch

from .. import _compare, _conditions, _pytree, _shapes
from .._conditions import Condition
from .._leaves import TensorLeaf
from .._program import ONNXProgram
from .._sizes import Asked, Size, Sizes
from . import _patches, _source_names, _trace
from ._guards import GuardLog
from ._torch_export import Call, Captured

#: Runs a capture with the arguments of a module.
Run = Callable[..., object]

#: At how many sizes a program is tried where a condition does not hold.
_TRIES = 4

#: The largest sizes at which it is tried, as a multiple of the nearest and of those of the example.
_FURTHEST = 4

#: Seconds of CPU time that trying takes at most, unless the first try takes more.
_BUDGET = 2.0


class Coverage:
    """The sizes that a call asks for, and whether captures of it are right there.

    Args:
        call: The module, its arguments and dynamic shapes as the user gives them.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    @functools.cached_property
    def sizes(self) -> Sizes:
        """The dynamic dimensions."""
        call = self._call
        names = _trace.positional_names(call)
        return Sizes(names, call.args, call.kwargs, _trace.tensor_leaves(call))

    @functools.cached_property
    def has_dims(self) -> bool:
        """Whether there are any."""
        return self._call.shapes is not None and bool(self.sizes.dims)

    @property
    def has_exact(self) -> bool:
        """Whether the user gave the range of a dimension."""
        return any(dim.exact for dim in self.sizes.dims.values())

    @property
    def leaves(self) -> list[TensorLeaf]:
        """The tensors within the arguments."""
        return _trace.tensor_leaves(self._call)

    def inputs(self, made: ONNXProgram) -> dict[str, str]:
        """The inputs of a model by path of the tensors within the arguments."""
        call = self._call
        names = {id(value): name for name, value in made._inputs(call.args, call.kwargs).items()}
        return {leaf.path: names[id(leaf.value)] for leaf in self.leaves}

    def conditions(self, log: GuardLog, call: Call) -> list[Condition]:
        """The conditions of a capture by torch.export, in the user's names.

        Args:
            log: Its log.
            call: The arguments that were captured.
        """
        if not self.has_dims:
            return []
        sizes = self.sizes
        paths = {id(leaf.value): leaf.path for leaf in _trace.tensor_leaves(call)}
        tensors = _source_names.tensors(call.model, call.args, call.kwargs)

        def name(source: str, axis: int) -> str | None:
            own = sizes.symbols.get(paths.get(id(tensors.get(source)), ""), [])
            return own[axis] if axis < len(own) else None

        return log.conditions(name)

    def of_capture(self, captured: Captured) -> list[Condition]:
        """The conditions of a capture by torch.export, and those that its program is static."""
        call = captured.call
        if not self.has_dims or call is None or captured.program is None:
            return []
        found = self.conditions(captured.log, call)
        program = captured.program
        values = {node.name: node.meta.get("val") for node in program.graph.nodes}
        paths = {id(leaf.value): leaf.path for leaf in _trace.tensor_leaves(call)}
        leaves = _pytree.leaves((call.args, call.kwargs))
        names = _shapes.inputs(program)
        static: dict[str, int] = {}
        for name, leaf in zip(names, leaves, strict=False) if len(names) == len(leaves) else ():
            shape: Sequence[object] = getattr(values.get(name or ""), "shape", ())
            symbols = self.sizes.symbols.get(paths.get(id(leaf), ""), [])
            pairs = zip(symbols, shape, strict=False)
            static.update({own: size for own, size in pairs if own and isinstance(size, int)})
        for name, size in static.items():
            expr = _conditions.equal(name, size)
            if all(one.expr != expr or one.kind != "branch" for one in found):
                places = (one.place for one in found if name in one.names and one.place)
                found.append(Condition(expr, "branch", next(places, None)))
        return found

    def asked(self, conditions: Sequence[Condition]) -> Asked:
        """The sizes at which a model is tried, for other arguments as well."""
        leaves = _trace.tensor_leaves(self._call)
        axes = {leaf.path: leaf.axes for leaf in leaves if leaf.axes}
        return Asked(_trace.positional_names(self._call), axes, conditions)

    def may_narrow(self, conditions: Iterable[Condition]) -> bool:
        """Whether a condition does not hold at sizes that are asked for."""
        return any(next(self._broken(condition), None) for condition in conditions)

    def _broken(self, condition: Condition) -> Iterator[dict[str, int]]:
        """Sizes at which a branch is another one."""
        if condition.kind == "branch" and not self._is_automatic(condition):
            yield from self.sizes.broken(condition)

    def _is_automatic(self, condition: Condition) -> bool:
        """Whether a condition makes a dimension static that may be static."""
        dims = [self.sizes.dims.get(name) for name in condition.names]
        makes_static = condition.expr.is_Equality and len(dims) == 1
        return makes_static and all(dim is not None and dim.automatic for dim in dims)

    def narrowing(
        self, conditions: Iterable[Condition], run: Run | None
    ) -> tuple[list[Condition], dict[Condition, dict[str, int]]]:
        """The conditions that do not hold at sizes that are asked for, and that the module takes.

        Args:
            conditions: The conditions of a capture.
            run: Runs the capture: where it is right anyway, a condition does not matter.

        Returns:
            The conditions, and those that do not matter at the sizes that were tried, each with
            the first of them: the code asks there, and may ask more.
        """
        found: list[Condition] = []
        untested: dict[Condition, dict[str, int]] = {}
        # Many conditions do not hold at the same sizes.
        known: dict[tuple[int, ...], bool | None] = {}
        deadline = time.process_time() + _BUDGET
        for condition in conditions:
            if found and time.process_time() > deadline:
                break
            points = list(self._broken(condition))
            near = [point for point in points if self.is_near(point, points[0])]
            chosen = [*near[:2], *near[-1:], *near[len(near) // 2 :]][:_TRIES]
            tried = [point for at, point in enumerate(chosen) if point not in chosen[:at]]
            right = None
            for point in tried:
                sizes = tuple(point.values())
                if sizes not in known:
                    known[sizes] = self.is_right(run, point)
                is_right = known[sizes]
                if is_right is False:
                    found.append(condition)
                    break
                right = point if right is None and is_right else right
                if time.process_time() > deadline:
                    break
            else:
                # Other dimensions may matter on the other side.
                is_part = len(tried) < len(points) or len(self.sizes.dims) > len(condition.names)
                if right and not condition.internal and is_part:
                    untested[condition] = right
        return found, untested

    def is_near(self, point: dict[str, int], nearest: dict[str, int]) -> bool:
        """Whether sizes are not far larger than others and than the example."""
        example = self.sizes.example
        return all(
            size <= _FURTHEST * max(nearest[name], example[name], 1) for name, size in point.items()
        )

    def automatic(self, call: Call, static: Collection[str]) -> object:
        """Dynamic shapes for torch.export that leave all dimensions dynamic that may be.

        Args:
            call: The module, with dynamic shapes for torch.export.
            static: Dimensions that are static.
        """
        sizes = self.sizes
        paths = {id(leaf.value): leaf.path for leaf in _trace.tensor_leaves(self._call)}

        def axes(leaf: object, _: object) -> object:
            symbols = sizes.symbols.get(paths.get(id(leaf), ""), [])
            known = {a: name for a, name in enumerate(symbols) if name and name not in static}
            return {axis: _auto(sizes.dims.get(name)) for axis, name in known.items()} or None

        return _shapes.map_axes(axes, call.model, call.args, call.kwargs, call.shapes)

    def first_wrong(self, run: Run, points: Iterable[dict[str, int]]) -> str | None:
        """The first of these sizes at which a capture is wrong, in words.

        Args:
            run: Runs the capture.
            points: The sizes.
        """
        start, first = time.process_time(), 0.0
        for point in points:
            if self.is_right(run, point) is False:
                return self.sizes.at(point).sizes
            spent = time.process_time() - start
            first = first or spent
            if spent > max(_BUDGET, 10 * first):
                break
        return None

    def is_right(self, run: Run | None, point: dict[str, int]) -> bool | None:
        """Whether a capture computes what the module does at these sizes; None if the module takes
        none such. Without ``run``, it is not right."""
        found = self.are_right([] if run is None else [run], point)
        return None if found is None else found == [True]

    def are_right(self, runs: Sequence[Run], point: dict[str, int]) -> list[bool] | None:
        """Whether each of several captures computes what the module does at these sizes; None if
        the module takes none such."""
        call, sizes = self._call, self.sizes
        with warnings.catch_warnings(), _patches.exporting():
            warnings.simplefilter("ignore")
            try:
                given = sizes.at(point)
                with _compare.same_numbers():
                    known = _compare.run(
                        call.model, given.args, given.kwargs, snapshot=call.snapshot
                    )
            except Exception:
                return None
            return [self._computes(run, known, point) for run in runs]

    def _computes(self, run: Run, known: list[object], point: dict[str, int]) -> bool:
        """Whether a capture returns the numbers of the module."""
        call = self._call

        def runs(*args: object, **kwargs: object) -> Sequence[object]:
            return _compare.tensors_and_numbers(run(*args, **kwargs))

        # Captures may write into their arguments.
        example = self.sizes.at(point)
        try:
            checks = _compare.compare_call(
                runs, call.model, example, snapshot=call.snapshot, known=known
            )
        except Exception:
            return False
        return all(check.ok for check in checks)


def _auto(size: Size | None) -> object:
    """A dimension that may be dynamic, of a range."""
    automatic: Any = torch.export.Dim.AUTO
    try:
        return automatic(min=size.low, max=size.high) if size else automatic
    except TypeError:
        # PyTorch 2.6.
        return automatic
