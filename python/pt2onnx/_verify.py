"""Comparing a model with PyTorch: types, shapes, numbers; NaN and infinities must be where they are expected."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import _script
    from ._program import ONNXProgram

#: Relative and absolute tolerance by element type. All others are compared exactly.
TOLERANCES = {
    "float64": (1e-6, 1e-8),
    "float32": (1e-3, 1e-4),
    "float16": (1e-2, 1e-2),
    "bfloat16": (4e-2, 4e-2),
    "complex64": (1e-3, 1e-4),
    "complex128": (1e-6, 1e-8),
}


@dataclasses.dataclass(frozen=True)
class OutputCheck:
    """How one output compares.

    ``problem`` says how it differs, None if it does not. ``max_abs_diff`` and ``max_rel_diff`` are the largest differences of numbers that
    are finite on both sides. ``inputs`` says at which sizes: ``"given"``, or the sizes that were changed.
    """

    name: str
    problem: str | None
    max_abs_diff: float
    max_rel_diff: float
    inputs: str = "given"

    @property
    def ok(self) -> bool:
        """Whether it is as expected."""
        return self.problem is None


@dataclasses.dataclass(frozen=True)
class Verification:
    """How all outputs compare. ``notes`` says what was not compared, and why."""

    outputs: tuple[OutputCheck, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all outputs are as expected."""
        return all(output.ok for output in self.outputs)

    def __str__(self) -> str:
        lines = [f"{o.name} ({o.inputs}): {o.problem or f'equal within tolerance, largest difference {o.max_abs_diff:.3g}'}" for o in self.outputs]
        return "\n".join([*lines, *self.notes])


def verify(
    program: ONNXProgram, model: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None, *, second_size: bool = True
) -> Verification:
    """Runs the model in ONNX Runtime and in PyTorch, and compares all outputs.

    ``model`` is what was exported. With ``second_size``, this is done at other sizes of the dynamic dimensions as well.
    Raises VerificationError if ONNX Runtime cannot load or run the model; what PyTorch raises at the given sizes.
    """
    kwargs = _ordered(program, dict(kwargs or {}))
    checks = _compare(program, model, tuple(args), kwargs, "given")
    notes: list[str] = []
    for more_args, more_kwargs, what in _at_other_sizes(program, tuple(args), kwargs, notes) if second_size else ():
        try:
            checks += _compare(program, model, more_args, more_kwargs, what)
            notes.clear()
            break
        except Exception as error:
            from ._errors import VerificationError

            if isinstance(error, VerificationError):
                checks.append(OutputCheck(checks[0].name if checks else "", str(error), float("inf"), float("inf"), what))
                break
            notes.append(f"not compared at {what}: PyTorch raises {type(error).__name__}: {str(error).strip()[:200]}")
    return Verification(tuple(checks), tuple(notes))


def _at_other_sizes(program: ONNXProgram, args: tuple[Any, ...], kwargs: dict[str, Any], notes: list[str]) -> Iterator[_script.Other]:
    """Arguments with larger dynamic dimensions, to be tried in turn. ``notes`` gets why there are none."""
    if not any(dim and not dim.isdigit() for _, _, dims in program._native.inputs() for dim in dims or ()):
        return
    try:
        if program._script is not None:
            yield from program._script.at_other_sizes(args, kwargs)
            return
        found = _grown(program, args, kwargs)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    if isinstance(found, str):
        notes.append(f"not compared at other sizes: {found}")
    else:
        yield found


def _ordered(program: ONNXProgram, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments in the order of the program, whose inputs have it."""
    from ._program import keyword_order

    source = program.exported_program
    names = keyword_order(source.call_spec.in_spec) if source is not None else []
    return {name: kwargs[name] for name in names} if set(names) == set(kwargs) else kwargs


def _compare(program: ONNXProgram, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], what: str) -> list[OutputCheck]:
    import copy

    import torch
    from torch.utils import _pytree

    from . import _errors, _script

    callable_model = model.module() if isinstance(model, torch.export.ExportedProgram) else model
    # Neither may see what the other writes into its inputs and buffers.
    own_args, own_kwargs = _pytree.tree_map(
        lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else copy.deepcopy(leaf), (args, kwargs)
    )
    with torch.no_grad(), keeping_buffers(callable_model):
        expected = callable_model(*own_args, **own_kwargs)
    leaves = [leaf for leaf in _pytree.tree_leaves(expected) if isinstance(leaf, (torch.Tensor, bool, int, float))]
    # The integers of quantised tensors may differ by one: a value may lie in the middle between two.
    quanta = [1 if at == 0 and len(of) > 1 else 0 for leaf in leaves for of in [_script.parts(leaf, result=True)] for at in range(len(of))]
    leaves = [part for leaf in leaves for part in _script.parts(leaf, result=True)]
    try:
        found = program(*args, **kwargs)
    except Exception as error:
        raise _errors.made(
            _errors.VerificationError, f"ONNX Runtime cannot run the model ({what}): {str(error).strip()}"
        ) from error
    names = program.output_names
    if len(leaves) != len(found):
        problem = f"PyTorch returns {len(leaves)} tensors and numbers, the model {len(found)}"
        return [OutputCheck(names[0] if names else "", problem, float("inf"), float("inf"), what)]
    return [compare(n, f, e, what, quantum) for n, f, e, quantum in zip(names, found, leaves, quanta)]


@contextlib.contextmanager
def keeping_buffers(model: Any) -> Iterator[None]:
    """Undoes what happens to the buffers of a module meanwhile: writes into them, and new tensors in their places."""
    import torch

    modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
    buffers = [(module, name, buffer) for module in modules for name, buffer in module.named_buffers(recurse=False)]
    old = [buffer.clone() for _, _, buffer in buffers]
    try:
        yield
    finally:
        for (module, name, buffer), values in zip(buffers, old):
            buffer.data = values
            if getattr(module, name) is not buffer:
                setattr(module, name, buffer)


def compare(name: str, found: Any, expected: Any, what: str = "given", quantum: int = 0) -> OutputCheck:
    """Compares one output with what is expected: tensors, or numbers of Python. Integers may differ by ``quantum``."""
    import torch

    number = not isinstance(expected, torch.Tensor)
    expected = torch.as_tensor(expected).detach().cpu()
    if expected.is_complex():
        dtype = str(expected.dtype).removeprefix("torch.")
        expected = torch.view_as_real(expected.resolve_conj())
    else:
        dtype = str(expected.dtype).removeprefix("torch.")
    found = torch.as_tensor(found).detach().cpu()
    if not number and found.dtype != expected.dtype:
        return OutputCheck(name, f"its type is {found.dtype}, expected {expected.dtype}", float("inf"), float("inf"), what)
    if found.shape != expected.shape:
        problem = f"its shape is {list(found.shape)}, expected {list(expected.shape)}"
        return OutputCheck(name, problem, float("inf"), float("inf"), what)
    rtol, atol = TOLERANCES.get(dtype, (0.0, float(quantum)))
    a, b = found.to(torch.float64), expected.to(torch.float64)
    finite = a.isfinite() & b.isfinite()
    equal = (a == b) | (a.isnan() & b.isnan())
    gap = torch.where(finite, (a - b).abs(), torch.zeros_like(a))
    close = equal | (finite & (gap <= atol + rtol * b.abs()))
    largest = gap.max().item() if gap.numel() else 0.0
    relative = torch.where(finite & (b != 0), gap / b.abs(), torch.zeros_like(gap))
    largest_relative = relative.max().item() if gap.numel() else 0.0
    if bool(close.all()):
        return OutputCheck(name, None, largest, largest_relative, what)
    at = (~close).nonzero()[0].tolist()
    index = tuple(at)
    problem = f"{int((~close).sum())} of {a.numel()} elements differ; at {at} it is {found[index].item()}, expected {expected[index].item()}"
    return OutputCheck(name, problem, largest, largest_relative, what)


def _grown(program: ONNXProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _script.Other | str:
    """The arguments with each dynamic dimension larger by one, where its range allows that, and by more where the program needs it; rows
    are repeated. A text says why there are none."""
    import torch
    from torch.utils import _pytree

    from . import _shapes

    source = program.exported_program
    if source is None:
        return "the model does not tell which ones there may be"
    nodes = {node.name: node for node in source.graph.nodes if node.op == "placeholder"}
    leaves, tree = _pytree.tree_flatten((args, kwargs))
    inputs = _shapes.inputs(source)
    if len(inputs) != len(leaves):
        return f"the program has {len(inputs)} inputs, but {len(leaves)} are given"
    dims: list[Any] = []
    sizes: dict[Any, int] = {}
    given: dict[Any, int] = {}
    for name, leaf in zip(inputs, leaves):
        value = nodes[name].meta.get("val") if name in nodes else None
        shape_of = value.shape if isinstance(leaf, torch.Tensor) and value is not None else ()
        dims.append([size if isinstance(size, int) else size.node.expr for size in shape_of])
        for axis, size in enumerate(dims[-1]):
            if not isinstance(size, int) and size.is_Symbol and size not in sizes:
                limits = source.range_constraints.get(size)
                larger = leaf.shape[axis] + 1
                sizes[size] = larger if limits is None or limits.upper >= larger else leaf.shape[axis]
                given[size] = leaf.shape[axis]
    if sizes == given:
        return "the program takes no larger ones"
    if not _related(sizes, program._relations):
        return "none were found at which all checks of the program hold"
    made: list[Any] = []
    for leaf, expected in zip(leaves, dims):
        for axis, size in enumerate(expected):
            if not isinstance(size, int):
                size = size.subs(sizes)
                if not size.is_Integer:
                    return f"{expected} does not follow from those of other inputs"
                rows = torch.arange(int(size), device=leaf.device) % max(leaf.shape[axis], 1)
                shape = (*leaf.shape[:axis], int(size), *leaf.shape[axis + 1 :])
                leaf = leaf.index_select(axis, rows) if leaf.shape[axis] else leaf.new_zeros(shape)
        made.append(leaf)
    more_args, more_kwargs = _pytree.tree_unflatten(made, tree)
    what = ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())
    return more_args, more_kwargs, what


def _related(sizes: dict[Any, int], relations: Sequence[Any]) -> bool:
    """Enlarges sizes until the relations of the program hold. False if they still do not after some steps."""
    for _ in range(2 * len(sizes) + 2):
        broken = next((r for r in relations if r.subs(sizes) == False), None)  # noqa: E712
        if broken is None:
            return True
        if not hasattr(broken, "lhs"):
            return False
        gap = (broken.rhs - broken.lhs).subs(sizes)
        smaller = [s for s in (broken.lhs if gap > 0 else broken.rhs).free_symbols if s in sizes]
        if not smaller or not gap.is_Integer:
            return False
        sizes[min(smaller, key=str)] += max(abs(int(gap)), 1)
    return False
