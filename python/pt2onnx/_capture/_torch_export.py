"""Captures by torch.export, in the ways that torch.onnx.export tries.

This module uses names of torch that are not public, each with a fallback.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import importlib
import inspect
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .. import _compare, _errors, _examples, _pytree, _shapes
from .._conditions import Condition
from .._program._origin import Example
from .._state import Snapshot
from .._types import Args, Kwargs, Model
from . import (
    _buffer_branches,
    _causal,
    _data,
    _failures,
    _gradients,
    _guards,
    _noise,
    _patches,
    _replaced_buffers,
)
from ._guards import GuardLog


@dataclasses.dataclass
class Captured:
    """A captured module.

    ``program`` is None if the strategy is one of TorchScript. ``failures`` are the errors of the
    strategies that were tried before. ``relations`` are assertions of the program about sizes.
    ``log`` has its conditions for the arguments of ``call``, and ``narrowing`` are those that do
    not follow from what is asked for. ``warnings`` are those of libraries, which are not shown, and
    ``seconds`` is the CPU time.
    """

    program: torch.export.ExportedProgram | None
    strategy: str
    failures: dict[str, BaseException]
    relations: list[object] = dataclasses.field(default_factory=list[object])
    log: GuardLog = dataclasses.field(default_factory=GuardLog)
    call: Call | None = None
    narrowing: list[Condition] = dataclasses.field(default_factory=list[Condition])
    warnings: Sequence[str] = ()
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Call:
    """A module or function, with the arguments and dynamic shapes to capture it with.

    ``snapshot`` is the state that each capture and each run restores, ``sizes`` those of the
    dynamic dimensions in words, where they are not the user's.
    """

    model: Model
    args: Args
    kwargs: Kwargs
    shapes: object
    snapshot: Snapshot = dataclasses.field(default_factory=Snapshot)
    sizes: str = ""

    def of(self, example: Example) -> Call:
        """The module with other arguments."""
        return dataclasses.replace(
            self, args=example.args, kwargs=example.kwargs, sizes=example.sizes
        )


class StaticSizes(Exception):
    """The code asks for dimensions, so that they would be static."""


class SmallSizes(StaticSizes):
    """The code asks for dimensions whose size is 0 or 1 in the example."""


class Fixes(enum.IntEnum):
    """Dimensions that may become static where the code asks for them: none, those whose size is 0
    or 1 in the example, or all."""

    NONE = 0
    SMALL = 1
    ALL = 2


@dataclasses.dataclass(frozen=True)
class TorchExport:
    """A strategy: torch.export.export with one value of ``strict``.

    ``name`` is torch.onnx's name of it in reports. ``gradients`` is whether it is for modules that
    compute gradients in ``forward``.
    """

    name: str
    strict: bool
    gradients: bool = False

    def capture(
        self,
        call: Call,
        failures: dict[str, BaseException],
        fixes: Fixes,
        logs: list[GuardLog],
    ) -> Captured:
        """Captures a module. Dimensions that the code asks for become static if that is allowed.

        Args:
            call: The module.
            failures: The errors of strategies that were tried before.
            fixes: Which dimensions may become static.
            logs: Gets the log of each capture, also of those that fail.

        Raises:
            StaticSizes: Others would have to.
            Exception: The errors of torch.export.
        """
        larger, given, start = None, call, time.process_time()
        with _patches.exporting(), _settings(self.strict):
            with _guards.logged() as log:
                logs.append(log)
                program = self._export(call, log, fixes)
            # Dynamo also has symbols for sizes of tensors that code in loops and branches uses.
            asked = log.specialized_by_torch or log.specialized_by_user
            asked = asked and _examples.has_small(call.model, call.args, call.kwargs, call.shapes)
            if asked and not log.inconsistent:
                larger = self._of_larger(program, call, log.specialized_by_user)
        if log.inconsistent or (asked and log.specialized_by_user and not larger):
            if fixes < Fixes.SMALL:
                raise SmallSizes(SmallSizes.__doc__)
            fixed = _examples.without_small(call.model, call.args, call.kwargs, call.shapes)
            with _patches.exporting(), _settings(self.strict), _guards.logged() as log:
                program = self._export(dataclasses.replace(call, shapes=fixed), log, fixes)
            log.notes.append(
                "The code asks for dimensions whose size is 0 or 1 in the example, so they are "
                "static: give an example in which they are larger."
            )
        elif larger:
            program, log, given = larger
        elif asked and log.specialized_by_torch:
            log.notes.append(
                "The model may be wrong where sizes are larger that are 0 or 1 in the example: "
                "give an example in which they are larger."
            )
        relations = _drop_assertions(program.graph_module)
        seconds = time.process_time() - start
        return Captured(program, self.name, failures, relations, log, given, seconds=seconds)

    def _of_larger(
        self, program: torch.export.ExportedProgram, call: Call, compare: bool
    ) -> tuple[torch.export.ExportedProgram, GuardLog, Call] | None:
        """The capture of an example with larger dimensions in place of those that are 0 or 1.

        Args:
            program: The program of the example.
            call: The module.
            compare: Whether the results must be the same numbers for the example.

        Returns:
            The program, its log, and the example; None if its results have other sizes or numbers,
            or if there is none.
        """
        try:
            args, kwargs = _examples.enlarge(call.model, call.args, call.kwargs, call.shapes)
            with _guards.logged() as log:
                given = dataclasses.replace(call, args=args, kwargs=kwargs)
                found = self._export(given, log, Fixes.NONE)
            if log.inconsistent or log.specialized_by_torch or log.specialized_by_user:
                return None
            if not _examples.same_result_sizes(program, found):
                return None
            differs = compare and not _same_numbers(found, call)
            return None if differs else (found, log, given)
        except Exception:
            # Such as sizes that belong to those of other inputs.
            return None

    def _export(self, call: Call, log: GuardLog, fixes: Fixes) -> torch.export.ExportedProgram:
        """One call of torch.export.export, and others with the dynamic shapes that its error
        suggests. ``log`` is that of the last one.

        Raises:
            StaticSizes: It suggests static ones, which is not allowed.
        """
        try:
            return self._export_once(call, log)
        except Exception as error:
            shapes_of_torch = torch.export.dynamic_shapes
            refine = getattr(shapes_of_torch, "refine_dynamic_shapes_from_suggested_fixes", None)
            if refine is None or type(error).__name__ != "UserError":
                raise
            try:
                refined = refine(getattr(error, "msg", str(error)), call.shapes)
            except Exception:
                raise error from None
            if fixed := _static_axes(refined) - _static_axes(call.shapes):
                if fixes < Fixes.ALL:
                    raise StaticSizes(StaticSizes.__doc__) from error
                plural = "dimensions" if fixed > 1 else "dimension"
                log.notes.append(
                    f"The model takes only the sizes of the example for {fixed} dynamic {plural}, "
                    f"as the code asks for them: {_errors.brief(error)}"
                )
            log.clear()
            return self._export_once(dataclasses.replace(call, shapes=refined), log)

    def _export_once(self, call: Call, log: GuardLog) -> torch.export.ExportedProgram:
        """One call of torch.export.export, with answers to questions about values of weights."""
        options: dict[str, Any] = {}
        deferred = "prefer_deferred_runtime_asserts_over_guards"
        if deferred in inspect.signature(torch.export.export).parameters:
            options[deferred] = True
        model: Any = call.model
        shapes: Any = call.shapes

        function = _gradients.export if self.gradients else torch.export.export

        def export() -> torch.export.ExportedProgram:
            follow = contextlib.nullcontext() if self.strict else _data.followed(model)
            with call.snapshot.kept(exports=True), _noise.held_back(), follow:
                program = function(
                    model,
                    call.args,
                    kwargs=call.kwargs,
                    dynamic_shapes=shapes,
                    strict=self.strict,
                    **options,
                )
            return _replaced_buffers.keep_old_values(program)

        try:
            return export()
        except Exception as error:
            if not self.strict and _causal.is_about(error):
                with _causal.computed(model):
                    return export()
            if self.strict or not _buffer_branches.may_help(model, error):
                raise
        with _buffer_branches.answered(model) as branches:
            program = export()
        branches.check(program)
        log.flags = branches.asked
        return program


#: The strategies of torch.onnx.export, in order.
STRATEGIES = (
    TorchExport("TorchExportNonStrictStrategy", strict=False),
    TorchExport("TorchExportStrictStrategy", strict=True),
)

#: The strategy that follows one that loses gradients.
GRADIENTS = TorchExport("TorchExportGradientsStrategy", strict=False, gradients=True)


def _static_axes(shapes: object) -> int:
    """The number of axes whose size dynamic shapes fix."""
    leaves, _ = _pytree.flatten(shapes, _shapes.is_axes)
    sizes = (size for axes in leaves if axes for _, size in _shapes.axis_sizes(axes))
    return sum(type(size) is int for size in sizes)


def capture(
    call: Call, say: Callable[[str], None], logs: list[GuardLog], *, fixes: Fixes = Fixes.ALL
) -> Captured:
    """The program of the first strategy that captures a module.

    Args:
        call: The module.
        say: Reports a step.
        logs: Gets the log of each capture, also of those that fail.
        fixes: Which dimensions that the code asks for may become static.

    Raises:
        TorchExportError: None does. It has the error of each.
    """
    failures: dict[str, BaseException] = {}
    lines = repr(call.model).split("\n", 1)
    name = lines[0] + ("[...]" if len(lines) > 1 else "")
    strategies = list(STRATEGIES)
    for strategy in strategies:
        export = f"`torch.export.export(..., strict={strategy.strict})`"
        step = f"Obtain model graph for `{name}` with {export}..."
        say(step)
        log = _gradients.GradientLog()
        try:
            with _gradients.logged(log):
                captured = strategy.capture(call, failures, fixes, logs)
            if not strategy.gradients:
                log.check()
        except Exception as error:
            if log.used and GRADIENTS not in strategies:
                strategies.insert(strategies.index(strategy) + 1, GRADIENTS)
            say(f"{step} ❌")
            failures[strategy.name] = error
        else:
            say(f"{step} ✅")
            return captured
    raise _failures.failed(failures)


def has_lost_constants(program: torch.export.ExportedProgram) -> bool:
    """Whether torch.export kept no values of constants, although the weights have values: ``x.data
    = x.data.to(device)`` leaves such a constant, which the program may not need."""
    fake_constants = (isinstance(one, FakeTensor) for one in program.constants.values())
    fake_weights = (isinstance(one, FakeTensor) for one in program.state_dict.values())
    return any(fake_constants) and not any(fake_weights)


def as_module(model: Any) -> torch.nn.Module:
    """A module for torch.export and the tracer: the model, or one that calls the function.

    A method ``forward`` is its module, and the result of ``torch.compile`` of a function is the
    function.
    """
    if isinstance(model, torch.nn.Module):
        return model
    function = getattr(model, "_torchdynamo_orig_callable", model)
    owner = getattr(function, "__self__", None)
    if not isinstance(owner, torch.nn.Module):
        return Function(function)
    hooks = vars(owner)
    hooked = hooks["_forward_hooks"] or hooks["_forward_pre_hooks"]
    return owner if function == owner.forward and not hooked else Function(function, owner)


class Function(torch.nn.Module):
    """A function as a module, which has the module that the function is a method of."""

    def __init__(
        self, function: Callable[..., object], owner: torch.nn.Module | None = None
    ) -> None:
        super().__init__()
        self.forward = function
        self.owner = owner

    def _get_name(self) -> str:
        return getattr(self.forward, "__qualname__", type(self.forward).__name__)


#: Ops that only check their arguments while the program runs.
_ASSERTIONS = (
    "_assert_async.default",
    "_assert_async.msg",
    "_assert_scalar.default",
    "_assert_tensor_metadata.default",
    "sym_constrain_range.default",
    "sym_constrain_range_for_size.default",
)


def _drop_assertions(root: torch.nn.Module) -> list[object]:
    """Removes assertions from the graphs of a program that we own, as torch.onnx.export does. ONNX
    has none, and some exclude sizes that the model takes: 0 and 1.

    Returns:
        Their conditions on sizes, as relations of SymPy.
    """
    relations: list[object] = []
    found = [name.split(".") for name in _ASSERTIONS]
    aten = torch.ops.aten
    ops = {getattr(getattr(aten, op, None), overload, None) for op, overload in found} - {None}
    for module in root.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        nodes = [node for node in module.graph.nodes if node.target in ops]
        for node in nodes:
            first = node.args[0]
            value = first.meta.get("val") if isinstance(first, torch.fx.Node) else None
            if isinstance(value, torch.SymBool):
                relations.append(value.node.expr)
            module.graph.erase_node(node)
        if nodes:
            module.recompile()
    return relations


def order_weights(program: torch.export.ExportedProgram, names: Iterable[str]) -> None:
    """Puts parameters and buffers of a program that we own into the order of a state dict."""
    order = {name: at for at, name in enumerate(names)}
    specs = program.graph_signature.input_specs
    places = [at for at, spec in enumerate(specs) if spec.target in order]
    ordered = sorted((specs[at] for at in places), key=lambda spec: order[spec.target or ""])
    for at, spec in zip(places, ordered, strict=True):
        specs[at] = spec
    inputs = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    first = next(node for node in program.graph.nodes if node.op != "placeholder")
    for spec in specs:
        first.prepend(inputs[spec.arg.name])
    program.graph_module.recompile()


def runnable(program: torch.export.ExportedProgram) -> torch.nn.Module:
    """A program as a module that takes all sizes that its ops take."""
    make: Callable[..., torch.nn.Module] = program.module
    has_guards = "check_guards" in inspect.signature(make).parameters
    module = make(check_guards=False) if has_guards else make()
    # Assertions may exclude the sizes of the example.
    _drop_assertions(module)
    vars(module)["_forward_pre_hooks"].clear()
    return module


def _same_numbers(program: torch.export.ExportedProgram, call: Call) -> bool:
    """Whether a program computes what the module does."""
    module = runnable(program)
    found = _compare.run(module, call.args, call.kwargs)
    expected = _compare.run(call.model, call.args, call.kwargs, snapshot=call.snapshot)
    return all(
        _compare.compare("", one, other).ok
        for one, other in zip(found, expected, strict=True)
        if isinstance(other, torch.Tensor)
    )


#: The module in which torch.vmap meets an index by a tensor.
_INDEXING = "torch._dynamo._trace_wrapped_higher_order_op"


@contextlib.contextmanager
def _settings(strict: bool) -> Generator[None, None, None]:
    """The state of torch that torch.onnx.export captures in."""
    config = importlib.import_module("torch.fx.experimental._config")
    with contextlib.ExitStack() as stack:
        # For tensors without memory, these ops only get the shapes of their results.
        kernels: dict[str, Callable[[Any], object]] = {"[CompositeImplicitAutograd]": _kernel}
        stack.enter_context(_patches.applied("capture", kernels))
        if hasattr(config, "backed_size_oblivious"):
            # Sizes of 0 and 1 stay dynamic.
            stack.enter_context(config.patch(backed_size_oblivious=True))
        if strict:
            make: dict[str, Callable[[Any], object]] = {
                "isinstance": lambda _: isinstance,
                "_get_handlers": _without_sizes,
            }
            stack.enter_context(_patches.applied("strict", make))
        else:
            stack.enter_context(_patches.applied("numbers", {"as_tensor": _with_sizes}))
            if _INDEXING in sys.modules:
                stack.enter_context(_patches.applied("indexing", {"mod_index": _plain}))
        yield


def _plain(apply: Any) -> object:
    """The operator that an autograd.Function calls, which torch.vmap knows."""
    return apply.__self__.forward


def _with_sizes(as_tensor: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """``torch.as_tensor`` that keeps sizes, and numbers that are computed from them."""

    def function(data: Any, dtype: torch.dtype | None = None, device: Any = None) -> torch.Tensor:
        if not isinstance(data, (torch.SymInt, torch.SymFloat)):
            return as_tensor(data, dtype=dtype, device=device)
        own = torch.int64 if isinstance(data, torch.SymInt) else torch.get_default_dtype()
        return torch.scalar_tensor(cast(float, data), dtype=dtype or own, device=device)

    return function


def _without_sizes(handlers: Callable[[], Mapping[object, object]]) -> object:
    """The handlers of Dynamo without that of ``torch._shape_as_tensor``."""
    excluded: object = cast(Any, torch)._shape_as_tensor
    kept = {key: handler for key, handler in handlers().items() if key is not excluded}
    return staticmethod(lambda: kept)


def _kernel(op: Any) -> object:
    kernels = {
        "lstm": _lstm,
        "_shape_as_tensor": _shape_as_tensor,
        "_reshape_from_tensor": _reshape_from_tensor,
    }
    return kernels.get(op._schema.name.removeprefix("aten::"), _recurrent)


def _shape_as_tensor(input: torch.Tensor) -> torch.Tensor:
    sizes = [torch.scalar_tensor(size, dtype=torch.int64) for size in input.shape]
    return torch.stack(sizes) if sizes else torch.zeros(0, dtype=torch.int64)


def _reshape_from_tensor(input: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    return input.reshape([cast(int, shape[at].item()) for at in range(shape.shape[0])])


def _recurrent(
    input: torch.Tensor,
    hidden: torch.Tensor,
    params: object,
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    size = hidden.shape[-1] * (2 if bidirectional else 1)
    return input.new_empty((*input.shape[:-1], size)), hidden.new_empty(hidden.shape)


def _lstm(
    input: torch.Tensor, states: list[torch.Tensor], *rest: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    # With projections, the hidden state is smaller than the cell state.
    output, hidden = _recurrent(input, states[0], *rest)
    return output, hidden, states[1].new_empty(states[1].shape)
