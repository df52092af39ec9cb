"""From a module to an ExportedProgram, in the ways that torch.onnx.export tries.

This module and ``_handover`` use names of torch that are not public, each with a fallback.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _answers, _errors, _flags, _larger

if TYPE_CHECKING:
    import torch

#: The ways, as torch.onnx calls them in reports, and ``strict`` of each.
STRATEGIES = (("TorchExportNonStrictStrategy", False), ("TorchExportStrictStrategy", True))


#: Held by the thread that captures.
LOCK = threading.RLock()


class Captured:
    """A program, the way that gave it, the errors of those that were tried before, and what holds of the program's sizes: what it asserts,
    and conditions that it does not, with the place of each. ``flags`` are the weights for whose values only it holds, with the place of each.
    There is no program if the way is one of TorchScript."""

    def __init__(
        self, program: torch.export.ExportedProgram | None, strategy: str, failures: dict[str, BaseException], relations: Sequence[Any] = (),
        conditions: Mapping[Any, str] | None = None, flags: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.program = program
        self.relations = relations
        self.conditions = conditions or {}
        self.flags = flags or {}
        self.strategy = strategy
        self.failures = failures


class SmallSizes(Exception):
    """The code asks for dimensions whose size is 0 or 1 in the example."""


def as_module(model: Any) -> Any:
    """What torch.export and the tracer take: a module, for a function one that calls it. A method ``forward`` is its module, and what
    ``torch.compile`` made of a function is the function."""
    import torch

    if isinstance(model, torch.nn.Module):
        return model
    function = getattr(model, "_torchdynamo_orig_callable", model)
    owner = getattr(function, "__self__", None)
    if not isinstance(owner, torch.nn.Module):
        return _Function(function)
    hooked = owner._forward_hooks or owner._forward_pre_hooks
    return owner if function == owner.forward and not hooked else _Function(function, owner)


def _Function(function: Callable[..., Any], owner: Any = None) -> Any:  # noqa: N802
    """A function as a module, which has the module that the function is a method of."""
    import torch

    class Function(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.forward = function
            self.owner = owner

        def _get_name(self) -> str:
            return getattr(function, "__qualname__", type(function).__name__)

    return Function()


def capture(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, say: Callable[[str], None], *, may_fix: bool = True
) -> Captured:
    """Tries each way in turn. If the code asks for dimensions whose size is 0 or 1 in the example, they become static if that may be.

    Raises TorchExportError with the error of the first way if none gives a program.
    """
    failures: dict[str, BaseException] = {}
    lines = repr(model).split("\n", 1)
    name = lines[0] + ("[...]" if len(lines) > 1 else "")
    for strategy, strict in STRATEGIES:
        step = f"Obtain model graph for `{name}` with `torch.export.export(..., strict={strict})`..."
        say(step)
        try:
            larger = None
            with exporting(), _settings(strict):
                with _answers.noted() as answers:
                    program = _export(model, args, kwargs, shapes, strict, answers)
                if (answers.narrow or answers.by_user) and not answers.wrong:
                    larger = _of_larger(program, model, args, kwargs, shapes, strict, answers.by_user)
                program = larger or program
            if answers.wrong or (answers.by_user and not larger):
                if not may_fix:
                    raise SmallSizes(SmallSizes.__doc__)
                _errors.warn(
                    "The code asks for dimensions whose size is 0 or 1 in the example, so they are static: give an example in which they "
                    "are larger."
                )
                with exporting(), _settings(strict), _answers.noted() as answers:
                    program = _export(model, args, kwargs, _larger.static(model, args, kwargs, shapes), strict, answers)
            elif answers.narrow and not larger:
                _errors.warn(
                    "The model may be wrong where sizes are larger that are 0 or 1 in the example: give an example in which they are larger."
                )
            conditions = answers.conditions()
        except Exception as error:
            say(f"{step} ❌")
            failures[strategy] = error
        else:
            say(f"{step} ✅")
            return Captured(program, strategy, failures, _drop_assertions(program.graph_module), conditions, answers.flags)
    raise failed(failures)


def failed(failures: dict[str, BaseException]) -> _errors.TorchExportError:
    """The error if no way gives a program."""
    first = next(iter(failures.values()))
    text = "".join(f"\n  {strategy}: {brief(error)}" for strategy, error in failures.items())
    made = _errors.made(
        _errors.TorchExportError,
        f"torch.export.export cannot capture the model, which is step 1 of 2 of the export:{text}\n"
        f"{type(first).__name__}: {first}",
    )
    assert isinstance(made, _errors.TorchExportError)
    made.failures_by_strategy = failures
    made.__cause__ = first
    return made


#: Ops that only check their arguments while the program runs.
_ASSERTIONS = (
    "_assert_async.default", "_assert_async.msg", "_assert_scalar.default", "_assert_tensor_metadata.default",
    "sym_constrain_range.default", "sym_constrain_range_for_size.default",
)  # fmt: skip


def _drop_assertions(root: torch.nn.Module) -> list[Any]:
    """Takes assertions out of the graphs of a program that is ours, as torch.onnx.export does. ONNX has none, and some exclude sizes that the model
    takes: 0 and 1. Returns what they say about sizes, as relations of SymPy."""
    import torch

    relations: list[Any] = []

    found = [name.split(".") for name in _ASSERTIONS]
    ops = {getattr(getattr(torch.ops.aten, op, None), overload, None) for op, overload in found} - {None}
    for module in root.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        nodes = [node for node in module.graph.nodes if node.target in ops]
        for node in nodes:
            value = node.args[0].meta.get("val") if isinstance(node.args[0], torch.fx.Node) else None
            if isinstance(value, torch.SymBool):
                relations.append(value.node.expr)
            module.graph.erase_node(node)
        if nodes:
            module.recompile()
    return relations


def order_weights(program: torch.export.ExportedProgram, names: Iterable[str]) -> None:
    """Puts parameters and buffers of a program that is ours into the order of these names, those of a state dict."""
    order = {name: at for at, name in enumerate(names)}
    specs = program.graph_signature.input_specs
    places = [at for at, spec in enumerate(specs) if spec.target in order]
    ordered = sorted((specs[at] for at in places), key=lambda spec: order[spec.target or ""])
    for at, spec in zip(places, ordered):
        specs[at] = spec
    inputs = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    first = next(node for node in program.graph.nodes if node.op != "placeholder")
    for spec in specs:
        first.prepend(inputs[spec.arg.name])
    program.graph_module.recompile()


def brief(error: BaseException) -> str:
    """The class and the first line of an error."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Makes ``torch.onnx.is_in_onnx_export()`` true. While this lasts no other thread captures: torch's own state is changed meanwhile."""
    with LOCK, _flagged():
        yield


@contextlib.contextmanager
def _flagged() -> Iterator[None]:
    """Sets the flag behind ``is_in_onnx_export``, which has another place in each version of torch: the first that is there."""
    flags = []
    for module, holder, name in (
        ("torch.onnx._internal.exporter._flags", None, "_is_onnx_exporting"),
        ("torch.onnx._globals", "GLOBALS", "in_onnx_export"),
    ):
        with contextlib.suppress(ImportError, AttributeError):
            place = importlib.import_module(module)
            place = getattr(place, holder) if holder else place
            flags.append((place, name, getattr(place, name)))
    try:
        for place, name, _ in flags[:1]:
            setattr(place, name, True)
        yield
    finally:
        for place, name, old in flags[:1]:
            setattr(place, name, old)


@contextlib.contextmanager
def _settings(strict: bool) -> Iterator[None]:
    """What torch.onnx.export sets while it captures."""
    import torch

    config: Any = importlib.import_module("torch.fx.experimental._config")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_whole_recurrent())
        stack.enter_context(_same_transforms())
        if hasattr(config, "backed_size_oblivious"):
            # Sizes of 0 and 1 stay dynamic.
            stack.enter_context(config.patch(backed_size_oblivious=True))
        if strict:
            # Dynamo does not know torch.jit.isinstance.
            stack.callback(setattr, torch.jit, "isinstance", torch.jit.isinstance)
            torch.jit.isinstance = isinstance
        yield


def _of_larger(
    program: torch.export.ExportedProgram, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, strict: bool, compared: bool
) -> torch.export.ExportedProgram | None:
    """The program of an example with larger dimensions in place of those that are 0 or 1, if its results have the same sizes, and if
    ``compared`` the same numbers for the example itself. None if there is no such program."""
    try:
        with _answers.noted() as answers:
            found = _export(model, *_larger.larger(model, args, kwargs, shapes), shapes, strict, answers)
        if answers.wrong or answers.narrow or answers.by_user or not _larger.same_results(program, found):
            return None
        return None if compared and not _same_numbers(found, model, args, kwargs) else found
    except Exception:
        # Such as sizes that belong to those of other inputs.
        return None


def _same_numbers(program: torch.export.ExportedProgram, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a program computes what the module does."""
    import torch
    from torch.utils import _pytree

    from . import _verify

    made = program.module()
    # Assertions may exclude the sizes of the example.
    _drop_assertions(made)
    made._forward_pre_hooks.clear()
    with torch.no_grad(), _verify.keeping_buffers(model):
        results = [_pytree.tree_leaves(run(*copy.deepcopy(args), **copy.deepcopy(kwargs))) for run in (made, model)]
    return all(_verify.compare("", one, other).ok for one, other in zip(*results, strict=True) if isinstance(other, torch.Tensor))


def _export(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, strict: bool, answers: _answers.Answers | None = None
) -> torch.export.ExportedProgram:
    """One call of torch.export.export, and others with the dynamic shapes that its error suggests, and with answers to what it asks about
    the values of weights. ``answers`` are those of the last one."""
    import torch

    options: dict[str, Any] = {}
    if "prefer_deferred_runtime_asserts_over_guards" in inspect.signature(torch.export.export).parameters:
        options["prefer_deferred_runtime_asserts_over_guards"] = True

    def once(shapes: Any) -> torch.export.ExportedProgram:
        return torch.export.export(model, args, kwargs=kwargs, dynamic_shapes=shapes, strict=strict, **options)

    def export(shapes: Any) -> torch.export.ExportedProgram:
        try:
            return once(shapes)
        except Exception as error:
            if strict or not _flags.may_help(model, error):
                raise
        with _flags.answered(model) as flags:
            program = once(shapes)
        flags.check(program)
        if answers:
            answers.flags = flags.asked
        return program

    try:
        return export(shapes)
    except Exception as error:
        refine = getattr(torch.export.dynamic_shapes, "refine_dynamic_shapes_from_suggested_fixes", None)
        if refine is None or type(error).__name__ != "UserError":
            raise
        try:
            refined = refine(getattr(error, "msg", str(error)), shapes)
        except Exception:
            raise error from None
        if answers:
            answers.clear()
        return export(refined)


@contextlib.contextmanager
def _same_transforms() -> Iterator[None]:
    """Leaves the transforms of functorch that a failed capture is still in: all that PyTorch does afterwards would be within them."""
    try:
        functorch: Any = importlib.import_module("torch._C._functorch")
        pop, depth = functorch.pop_dynamic_layer_stack_and_undo_to_depth, functorch.get_dynamic_layer_stack_depth
    except (ImportError, AttributeError):
        yield
        return
    old = depth()
    try:
        yield
    finally:
        if depth() > old:
            pop(old)


@contextlib.contextmanager
def _whole_recurrent() -> Iterator[None]:
    """Keeps LSTM, GRU and RNN in one piece. For tensors without memory torch takes them apart step by step, which makes the number of
    steps static; here they only get the shapes of their results."""
    import torch

    key = torch._C.DispatchKey.CompositeImplicitAutograd
    old: list[tuple[Any, Any]] = []
    try:
        for name, kernel in (("lstm", _lstm), ("gru", _recurrent), ("rnn_tanh", _recurrent), ("rnn_relu", _recurrent)):
            op = getattr(torch.ops.aten, name).input
            old.append((op, op.py_kernels.get(key)))
            op.py_kernels[key] = kernel
            op._dispatch_cache.clear()
        yield
    finally:
        for op, kernel in old:
            if kernel is None:
                op.py_kernels.pop(key, None)
            else:
                op.py_kernels[key] = kernel
            op._dispatch_cache.clear()


def _recurrent(
    input: Any, hidden: Any, params: Any, has_biases: bool, layers: int, dropout: float, train: bool, bidirectional: bool,
    batch_first: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    size = hidden.shape[-1] * (2 if bidirectional else 1)
    return input.new_empty((*input.shape[:-1], size)), hidden.new_empty(hidden.shape)


def _lstm(input: Any, states: Any, *rest: Any) -> tuple[Any, Any, Any]:
    # With projections, the hidden state is smaller than the cell state.
    output, hidden = _recurrent(input, states[0], *rest)
    return output, hidden, states[1].new_empty(states[1].shape)
