"""Comparing outputs with those of PyTorch: types, shapes, numbers; NaN and infinities must be where
they are expected.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch

from . import _errors, _leaves, _objects, _ort_torch, _pytree
from ._owners import owners, state_of
from ._program._origin import Example
from ._state import Snapshot
from ._types import Args, Kwargs, Model
from ._verification import OutputCheck

if TYPE_CHECKING:
    from ._verify import Verifiable

#: Relative and absolute tolerance by element type. All others are compared exactly.
TOLERANCES = {
    torch.float64: (1e-6, 1e-8),
    torch.float32: (1e-3, 1e-4),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (4e-2, 4e-2),
    torch.complex64: (1e-3, 1e-4),
    torch.complex128: (1e-6, 1e-8),
}


#: The note on models that are right, but not what PyTorch's fast path computes.
_FAST_PATH = (
    "compared with PyTorch without its fast path for TransformerEncoder, which zeroes or cuts "
    "padded rows (torch.backends.mha.set_fastpath_enabled(False)): in these rows, the model "
    "returns what PyTorch computes without it"
)


#: The values within a result.
Values = Callable[[object], Iterable[object]]

#: The values that follow those of the result after a call: by the number of these, and the
#: arguments, which the module may have written into.
Written = Callable[[int, Args, Kwargs], Iterable[object]]


def tensors_and_numbers(result: object) -> list[object]:
    """The tensors and numbers within a result."""
    numbers = (torch.Tensor, bool, int, float)
    return [leaf for leaf in _objects.results(result) if isinstance(leaf, numbers)]


def nothing(*_: object) -> tuple[object, ...]:
    """No values: a ``Written``."""
    return ()


def run(
    model: Model,
    args: Args,
    kwargs: Kwargs,
    values: Values = tensors_and_numbers,
    snapshot: Snapshot | None = None,
    written: Written = nothing,
) -> list[object]:
    """The values within the result of a module for copies of the arguments, without gradients. The
    module is left as it was.

    Args:
        model: The module.
        args: The positional arguments.
        kwargs: The keyword arguments.
        values: The values within a result.
        snapshot: The state of the module, if there is one.
        written: Those that follow.

    Raises:
        Exception: The errors of the module.
    """
    own = snapshot or Snapshot(model)

    def call() -> list[object]:
        own_args, own_kwargs = copied(args, kwargs)
        with own.kept():
            found = list(values(model(*own_args, **own_kwargs)))
            found += written(len(found), own_args, own_kwargs)
            plain = (one.detach() if isinstance(one, torch.Tensor) else one for one in found)
            return [own.detached(one) for one in plain]

    try:
        with torch.no_grad():
            return call()
    except RuntimeError as error:
        # The code computes gradients, and never runs without them.
        if "does not require grad" not in str(error):
            raise
    with torch.enable_grad():
        return call()


def copied(args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """Copies of arguments. Tensors within them need not be leaves of autograd."""
    tensors = [leaf for leaf in _pytree.leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    made = {id(one): one.detach().clone().requires_grad_(one.requires_grad) for one in tensors}
    return copy.deepcopy((args, kwargs), cast(dict[int, Any], made))


@contextlib.contextmanager
def same_numbers() -> Generator[None, None, None]:
    """Random numbers are the same in all these contexts, and go on afterwards as before."""
    random, cuda = cast(Any, torch.random), cast(Any, torch.cuda)
    # torch.manual_seed would also seed devices that are not used yet, once they are.
    devices = range(cuda.device_count()) if cuda.is_initialized() else ()
    with random.fork_rng(devices=list(devices)):
        random.default_generator.manual_seed(0)
        if devices:
            cuda.manual_seed_all(0)
        yield


def compare_call(
    program: Callable[..., Sequence[object]],
    model: Model,
    example: Example,
    names: Sequence[str] = (),
    values: Values = tensors_and_numbers,
    snapshot: Snapshot | None = None,
    written: Written = nothing,
    known: list[object] | None = None,
) -> list[OutputCheck]:
    """Runs a program and a module with the same arguments, and compares the outputs.

    Args:
        program: The program, which returns its outputs, quantised tensors by their components.
        model: The module.
        example: The arguments.
        names: The names of the outputs.
        values: The outputs within a result of the module.
        snapshot: The state of the module, if there is one.
        written: Those that follow.
        known: The outputs of the module, if it ran before.

    Raises:
        Exception: The errors of the module, or of the program.
    """
    own = snapshot or Snapshot(model)

    def compared(known: list[object] | None = None) -> list[OutputCheck]:
        if known is None:
            with same_numbers():
                known = run(model, example.args, example.kwargs, values, own, written)
        return _compare_call(program, known, example, names)

    checks = compared(known)
    if all(check.ok for check in checks) or not _has_fast_path(model):
        return checks
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        others = compared()
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    if not all(check.ok for check in others):
        return checks
    return [dataclasses.replace(check, note=_FAST_PATH) for check in others]


def _has_fast_path(model: Model) -> bool:
    modules = [part for owner in owners(model) for part in owner.modules()]
    layers = (torch.nn.TransformerEncoderLayer, torch.nn.MultiheadAttention)
    return torch.backends.mha.get_fastpath_enabled() and any(isinstance(m, layers) for m in modules)


def _compare_call(
    program: Callable[..., Sequence[object]],
    results: list[object],
    example: Example,
    names: Sequence[str],
) -> list[OutputCheck]:
    parts = [_leaves.components(result, result=True) for result in results]
    # The integers of quantised tensors may differ by one: a value may lie halfway between two.
    quanta = [int(at == 0 and len(of) > 1) for of in parts for at in range(len(of))]
    expected = [part for of in parts for part in of]
    with same_numbers():
        found = program(*example.args, **example.kwargs)
    names = names or [""] * len(found)
    if len(expected) != len(found):
        text = f"PyTorch returns {len(expected)} tensors and numbers, the model {len(found)}"
        return [OutputCheck(names[0] if names else "", text, math.inf, math.inf, example.sizes)]
    return [
        compare(name, one, other, example.sizes, quantum)
        for name, one, other, quantum in zip(names, found, expected, quanta, strict=False)
    ]


def compare_model(program: Verifiable, model: Model, example: Example) -> list[OutputCheck]:
    """Compares a model with its module. State that is an input of the model is that of the module,
    and outputs that have the new values of state or inputs are compared with these.

    Args:
        program: The model.
        model: The module.
        example: The arguments.

    Raises:
        VerificationError: The model cannot be run.
        Exception: The errors of the module.
    """
    if isinstance(model, torch.export.ExportedProgram):
        model = model.module()
    state = state_of(model)
    old = {name: tensor.detach().clone() for name, tensor in state.items()}
    names = program.output_names

    def call(*args: object, **kwargs: object) -> Sequence[object]:
        try:
            return program._run(args, kwargs, old)
        except Exception as error:
            text = f"ONNX Runtime cannot run the model ({example.sizes}): {str(error).strip()}"
            raise _errors.new_error(_errors.VerificationError, text) from error

    def written(count: int, args: Args, kwargs: Kwargs) -> Iterator[object]:
        # Functions may write into tensors around them.
        exported = program.exported_program
        new: dict[str, object] = {**(exported.constants if exported else {}), **state_of(model)}
        for name in names[count:]:
            source = name.removesuffix(".next")
            if source in new:
                yield new[source]
            elif source in (inputs := program._inputs(args, kwargs)):
                yield inputs[source]

    return compare_call(call, model, example, names, written=written)


def compare(
    name: str, found: object, expected: object, inputs: str = "given", quantum: int = 0
) -> OutputCheck:
    """Compares one output with the expected one: tensors, or numbers of Python.

    Args:
        name: The name of the output.
        found: The output.
        expected: The expected output.
        inputs: The sizes of the inputs.
        quantum: By how much integers may differ.
    """
    exact_type = isinstance(expected, torch.Tensor)
    b = torch.as_tensor(expected).detach().cpu()
    rtol, atol = TOLERANCES.get(b.dtype, (0.0, float(quantum)))
    b = _real(b)
    # A model without inputs gives arrays.
    is_array = type(found).__module__ == "numpy" and type(found).__name__ == "ndarray"
    tensor = _ort_torch.from_numpy(cast(Any, found)) if is_array else torch.as_tensor(found)
    # Models return complex numbers as pairs, PyTorch does not.
    a = _real(tensor.detach().cpu())
    if exact_type and a.dtype != b.dtype:
        text = f"its type is {a.dtype}, expected {b.dtype}"
        return OutputCheck(name, text, math.inf, math.inf, inputs)
    if a.shape != b.shape:
        text = f"its shape is {list(a.shape)}, expected {list(b.shape)}"
        return OutputCheck(name, text, math.inf, math.inf, inputs)
    if a.dtype == b.dtype and torch.equal(a, b):
        return OutputCheck(name, None, 0.0, 0.0, inputs)
    x, y = a.to(torch.float64), b.to(torch.float64)
    finite = x.isfinite() & y.isfinite()
    gap = torch.where(finite, (x - y).abs(), torch.zeros_like(x))
    equal = (x == y) | (x.isnan() & y.isnan())
    close = equal | (finite & (gap <= atol + rtol * y.abs()))
    relative = torch.where(finite & (y != 0), gap / y.abs(), torch.zeros_like(gap))
    largest = gap.max().item() if gap.numel() else 0.0
    largest_relative = relative.max().item() if gap.numel() else 0.0
    problem = None
    if not bool(close.all()):
        at = [int(i) for i in (~close).nonzero()[0]]
        index = tuple(at)
        count = f"{int((~close).sum())} of {x.numel()} elements differ"
        problem = f"{count}; at {at} it is {a[index].item()}, expected {b[index].item()}"
    return OutputCheck(name, problem, largest, largest_relative, inputs)


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor with complex numbers as pairs in a last axis."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
