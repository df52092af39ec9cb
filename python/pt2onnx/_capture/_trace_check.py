"""Whether a trace holds for other arguments than its own: it is compared with the module."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import torch

from .. import _examples, _leaves, _shapes
from .._sizes import Sizes
from . import _trace, _trace_borders
from ._budget import SMALL, Budget
from ._jit import JitGraph, JitType
from ._torch_export import Call
from ._trace import Traced


def _half(size: int) -> int:
    """About half of a size: many modules take no odd ones, or only multiples of 32."""
    if size >= 64 and size % 32 == 0:
        return size // 64 * 32
    return size // 2 if size >= 8 and size % 2 == 0 else size + 1


def _far(size: int) -> int:
    return size * 5 if size <= 16 else size * 2


#: The sizes that are tried in turn. Smaller ones come first.
_GROWTHS: tuple[_examples.Growth, ...] = (
    lambda size: 1 if size == 2 else _half(size),
    _half,
    lambda size: size - 32 if size >= 64 and size % 32 == 0 else size + 1,
    *_examples.GROWTHS,
    _far,
)

#: Seconds of CPU time that comparing may take, if tracing took less, and how many operators of the
#: trace run in any case.
_SECONDS, _OPERATORS = 0.2, 1 << 12

#: Seconds of CPU time in which sizes are looked at, and the part of the time of tracing, if that is
#: longer.
_LOOKING, _LOOKING_PART = 0.01, 1 / 8

#: How many operators run in any case to look at sizes, where few run for each.
_LOOKING_OPERATORS = 1 << 14

#: Elements that the largest argument or result may have in any case: the time for fewer depends on
#: the operators more than on sizes.
_FEW = 1 << 18

#: Seconds that a run takes at least.
_SHORTEST = 1e-3

#: How many sizes at which the code reads something else are always compared.
_ALWAYS = 2

#: Seconds of CPU time of traces that are always compared.
_QUICK = 0.05

#: How many numbers of one side of a branch are compared.
_NUMBERS = 4

#: How many other values are compared at least, if none of them shows anything.
_FEWEST_VALUES = 2

#: Operators that give another size to an axis.
_RESIZING = ("slice", "narrow", "pad", "constant_pad_nd")

#: Operators that return lists of pieces.
_PIECES = ("split", "chunk", "unbind", "tensor_split", "unsafe_split", "unsafe_chunk")


def check(traced: Traced, sizes: Sizes) -> list[str]:
    """Compares a trace with its module at one other size of the dynamic dimensions, at two and more
    if Python code read sizes, or three if it read values, then also with other values. It is
    compared for its own arguments where sizes were keys, where all comparisons failed, and where
    none was made of a quick trace.

    Args:
        traced: The trace.
        sizes: The dynamic dimensions.

    Returns:
        Notes on what was not compared, because the module takes no such arguments.

    Raises:
        TraceWarning: The results differ.
    """
    allowed = max(_SECONDS, traced.seconds)
    seconds = traced.run.seconds if traced.run else 0.0
    budget = Budget(_OPERATORS, allowed - seconds)
    operators = traced.code.operators
    has_pieces = bool(sizes.dims) and _has_pieces(traced, set(sizes.example.values()))
    most = sizes.elements(sizes.example) * allowed / (2 * max(seconds, _SHORTEST))
    most = max(most, _few(traced))
    looked = _trace_borders.Borders([], [])
    if traced.sizes.any:
        always = _LOOKING_OPERATORS if traced.code.read_operators <= SMALL else 0
        looking = Budget(always, max(_LOOKING, _LOOKING_PART * traced.seconds))
        looked = _trace_borders.borders(traced, sizes, most, looking)
    borders = [*looked.others, *looked.points]
    wanted = 3 if traced.notes or has_pieces else 2 if traced.sizes.any else 1
    found: list[Exception | None] = []
    # The first is the run before.
    always = min(len(looked.others), _ALWAYS) + 1 if looked.others else 0
    for at, call in enumerate(_others(traced, sizes, borders, has_pieces, most)):
        try:
            found.append(_trace.compare(traced, call))
        except _trace.TraceWarning:
            if at == 0 and _is_single(traced, call):
                continue
            raise
        # At two sizes that are no borders at least.
        enough = (at > len(borders) or not borders) and found.count(None) >= wanted
        budget.spend(operators)
        if enough or (budget.is_spent and at >= always):
            break
    if traced.sizes.branches:
        _check_hidden(traced, sizes, borders, most, budget)
    values: list[Exception | None] = []
    for call in _with_other_values(traced) if traced.notes else ():
        if budget.is_spent and (None in values or len(values) >= _FEWEST_VALUES):
            break
        values.append(_trace.compare(traced, call))
        budget.spend(operators)
    tried = found + values
    is_quick = traced.seconds < _QUICK
    if traced.sizes.keys or (None not in tried if tried else is_quick):
        _trace.check_own(traced)
    failed = next(filter(None, found), None)
    notes = [] if failed is None or None in found else [_trace.fails(failed)]
    return notes if None in values else [*notes, *traced.notes]


def _few(traced: Traced) -> float:
    """How many elements the arguments may have in any case: results may be far larger."""
    run = traced.run
    given = [leaf.value.numel() for leaf in _trace.tensor_leaves(run.call if run else traced.call)]
    made = [result.numel() for result in run.results] if run else []
    return _FEW * sum(given) / max(1, *given, *made)


def with_numbers(traced: Traced) -> Traced | None:
    """A trace that computes the numbers which the code makes of sizes; None if there are no such
    numbers, no such trace, or no dynamic sizes.

    Raises:
        TraceWarning: The code decides by a power, a root or a logarithm of a size.
    """
    found = traced
    if not any([*_shapes.axis_sizes(leaf.axes)] for leaf in traced.leaves):
        return None
    if traced.sizes.ints or traced.sizes.floats:
        try:
            found = _trace.trace_call(traced.call, traced.run, keep_ints=True)
        except Exception:
            return None
    if found.sizes.curved:
        raise _trace.TraceWarning(
            "the code decides by a power, a root or a logarithm of a size, which may be another "
            "one at sizes that are far larger"
        )
    return None if found is traced else found


def _check_hidden(
    traced: Traced,
    sizes: Sizes,
    borders: list[dict[str, int]],
    most: float,
    budget: Budget,
) -> None:
    """Compares a trace at sizes for which the code asks on one side of a branch only: ``if t > 8: x
    = x[:, :64]``.

    Args:
        traced: The trace, which is right on both sides.
        sizes: The dynamic dimensions.
        borders: Sizes on both sides.
        most: How many elements the arguments may have.
        budget: When to end.

    Raises:
        TraceWarning: The results differ.
    """
    example, own = sizes.example, _trace_borders.numbers(traced)
    operators = traced.code.operators
    known = _trace_borders.own_reads(traced)
    # Those that leave other dimensions first: what is hidden may depend on them.
    near = sorted(borders, key=lambda point: len(point.items() - example.items()))
    larger = [point for point in near if any(point[name] > example[name] for name in point)]
    smaller = [point for point in near if point not in larger]
    if operators > SMALL:
        # Code asks for a size of 1 often.
        smaller = [point for point in smaller if any(1 < point[n] < example[n] for n in point)]
    for point in (*larger[:1], *smaller[:1]):
        if budget.is_spent:
            return
        if known is not None and _trace_borders.reads(traced, sizes, point) == known:
            continue
        call = _trace_borders.call_at(traced, sizes, point)
        try:
            numbers = sorted(_trace_borders.numbers(traced.at(call)) ^ own)[:_NUMBERS]
        except Exception:
            # The module takes no such sizes, or cannot be traced there.
            continue
        least = max(point.values())
        multiples = [number * (least // number + step) for number in numbers for step in (1, 2)]
        for hidden in sizes.borders((), [*numbers, *multiples], point):
            if budget.is_spent:
                return
            if sizes.elements(hidden) <= most:
                budget.spend(operators)
                _trace.compare(traced, _trace_borders.call_at(traced, sizes, hidden))


def _is_single(traced: Traced, call: Call) -> bool:
    """Whether a size is 1 that is 2 in the example: much code does something else for 1, such as
    ``squeeze``."""
    pairs = zip(_trace.tensor_leaves(call), traced.leaves, strict=True)
    sizes = ((new.value.shape, old.value.shape) for new, old in pairs)
    return any((1, 2) in zip(new, old, strict=True) for new, old in sizes)


def _has_pieces(traced: Traced, dynamic: set[int]) -> bool:
    """Whether a trace has as many pieces of a tensor as a size decides.

    Args:
        traced: The trace.
        dynamic: The dynamic sizes of the example.
    """
    for graph in traced.code.graphs():
        found = [next(iter(n.inputs())).node() for n in graph.findAllNodes("prim::ListUnpack")]
        pieces = [node for node in found if node.kind().removeprefix("aten::") in _PIECES]
        derived = dynamic | _resized(graph, dynamic) if pieces else dynamic
        for node in pieces:
            at = list(node.inputs())[-1].toIValue()
            lists = [use.user for use in node.output().uses()]
            unpacked = next(user for user in lists if user.kind() == "prim::ListUnpack")
            shapes = [piece.type().sizes() for piece in unpacked.outputs()]
            known = [shape for shape in shapes if shape is not None]
            if not isinstance(at, int) or len(known) < len(shapes):
                return True
            is_unbind = node.kind() == "aten::unbind"
            if (len(known) if is_unbind else sum(shape[at] for shape in known)) in derived:
                return True
    return False


def _resized(graph: JitGraph, dynamic: set[int]) -> set[int]:
    """The sizes that axes of dynamic sizes get: ``x[:, :3]`` may be shorter."""
    found = set[int]()
    for name in _RESIZING:
        for node in graph.findAllNodes(f"aten::{name}"):
            old = next(iter(node.inputs())).type()
            new = node.output().type()
            pairs = zip(_known_sizes(old), _known_sizes(new), strict=False)
            found.update(size for own, size in pairs if own in (dynamic | found) and own != size)
    return found


def _known_sizes(type_: JitType) -> Sequence[int]:
    sizes = type_.sizes() if type_.kind() == "TensorType" else None
    return sizes or ()


def at_other_sizes(call: Call) -> Iterator[Call]:
    """The module with arguments of other sizes."""
    leaves = _trace.tensor_leaves(call)
    names = _trace.positional_names(call)
    for example in _examples.of_leaves(names, call.args, call.kwargs, leaves, (), _GROWTHS):
        yield call.of(example)


def _others(
    traced: Traced,
    sizes: Sizes,
    borders: list[dict[str, int]],
    has_pieces: bool,
    most: float,
) -> Iterator[Call]:
    """The module with arguments of other sizes, each once: first those of the run before, then
    those at borders, or with other numbers of pieces, and far larger ones, of up to
    ``most`` elements."""
    call = traced.call
    seen = [[leaf.value.shape for leaf in traced.leaves]]
    first = [traced.run.call] if traced.run else []
    # Sizes that all differ come first.
    generic = sorted(
        sizes.generic() if has_pieces else (),
        key=lambda point: any(point[name] == size for name, size in sizes.example.items()),
    )
    # Loops over a size may have more steps at a far larger one.
    dims = sizes.dims.items() if traced.sizes.any else ()
    far = {name: min(_far(dim.example), dim.high or _far(dim.example)) for name, dim in dims}
    points = [*borders, *generic]
    if far and sizes.takes(far) and sizes.elements(far) <= most:
        points.append(far)
    own = (_trace_borders.call_at(traced, sizes, point) for point in points)
    for other in itertools.chain(first, own, at_other_sizes(call)):
        shapes = [leaf.value.shape for leaf in _trace.tensor_leaves(other)]
        if shapes not in seen:
            seen.append(shapes)
            yield other


def _with_other_values(traced: Traced) -> Iterator[Call]:
    """The arguments with other values: of the other sign or truth, in another order, far larger."""
    call = traced.call
    names = _trace.positional_names(call)
    values = {leaf.path: leaf.value for leaf in traced.leaves}
    for change in (_inverted, _shuffled, _enlarged):
        changed = {path: change(value) for path, value in values.items()}
        if any(new is not values[path] for path, new in changed.items()):
            args, kwargs = _leaves.rebuild_call(names, call.args, call.kwargs, changed)
            yield dataclasses.replace(call, args=args, kwargs=kwargs)


def _shuffled(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.numel() < 2:
        return tensor
    generator = torch.Generator().manual_seed(3)
    order = torch.randperm(tensor.numel(), generator=generator).to(tensor.device)
    return tensor.flatten()[order].reshape(tensor.shape)


def _inverted(tensor: torch.Tensor) -> torch.Tensor:
    """The negative. Many integers may be indices, and stay."""
    if tensor.dtype == torch.bool:
        return ~tensor
    if tensor.is_floating_point() or tensor.is_complex():
        return -tensor
    return tensor + 1 if tensor.dim() == 0 else tensor


def _enlarged(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * 1000 if tensor.is_floating_point() else tensor
