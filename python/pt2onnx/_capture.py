"""From a module to an ExportedProgram, in the ways that torch.onnx.export tries.

This module and ``_handover`` use names of torch that are not public, each with a fallback.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _errors

if TYPE_CHECKING:
    import torch

#: The ways, as torch.onnx calls them in reports, and ``strict`` of each.
STRATEGIES = (("TorchExportNonStrictStrategy", False), ("TorchExportStrictStrategy", True))


#: Held by the thread that captures.
LOCK = threading.RLock()


class Captured:
    """A program, the way that gave it, the errors of those that were tried before, and what holds of the program's sizes: what it asserts,
    and conditions that it does not, with the place of each. There is no program if the way is one of TorchScript."""

    def __init__(
        self, program: torch.export.ExportedProgram | None, strategy: str, failures: dict[str, BaseException], relations: Sequence[Any] = (),
        conditions: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.program = program
        self.relations = relations
        self.conditions = conditions or {}
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
            with exporting(), _settings(strict), _answers() as answers:
                program = _export(model, args, kwargs, shapes, strict, answers)
                larger = None
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
                with exporting(), _settings(strict), _answers() as answers:
                    program = _export(model, args, kwargs, _static(model, args, kwargs, shapes), strict, answers)
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
            return Captured(program, strategy, failures, _drop_assertions(program.graph_module), conditions)
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
            # Dynamo does not know it.
            stack.callback(setattr, torch.jit, "isinstance", torch.jit.isinstance)
            torch.jit.isinstance = isinstance
        yield


class _Answers:
    """What the code asked about sizes that are 0 or 1 in the example.

    ``wrong`` are questions to which the example gives another answer than the capture. Dynamic dimensions are captured as if they were
    2 or more, which is right where torch only looks for sizes that broadcast, but not for ``if x.shape[0] == 0:``.
    ``narrow`` says that torch asked something to which larger sizes give another answer than the example does; ``by_user``, that the
    user's code did (``if x.shape[0] == 1:``), where larger sizes take another branch. ``fixed`` are numbers and branches that the code chose by sizes: node, answer and place of each.
    """

    def __init__(self) -> None:
        self.wrong = self.narrow = self.by_user = False
        self.fixed: list[tuple[Any, Any, str]] = []

    def add(self, node: Any, answer: bool, file: str) -> None:
        """Notes an answer. ``file`` is that of a question of C++."""
        if getattr(node, "_hint", None) is not None and bool(node._hint) != answer:
            self.wrong = True
        else:
            self.add_number(node, answer, file)

    def add_number(self, node: Any, answer: Any, file: str) -> None:
        """Notes a number, or an answer that is that of the example."""
        if not getattr(node.expr, "free_symbols", None):
            return
        place = "" if file else _place_of_user()
        if not _only_small(node, answer):
            self.fixed += [(node, answer, place)] if place else []
        elif place or not (file or _asked_by_torch()):
            self.by_user = True
        else:
            # A size that torch itself needs as a number becomes static.
            self.narrow = self.narrow or isinstance(answer, bool)

    def conditions(self) -> dict[str, str]:
        """What the sizes must be for these numbers and branches, with the place of each, where the program's ranges do not say it. Two
        that are one equation are left out: these sizes belong together."""
        found = {expr: place for node, answer, place in self.fixed if (expr := _condition(node, answer)) is not None}
        gaps = {expr: (expr.lts - expr.gts).expand() for expr in found if hasattr(expr, "lts")}
        opposite = {(-gap).expand() for gap in gaps.values()}
        return {str(expr): place for expr, place in found.items() if gaps.get(expr) not in opposite}

    def clear(self) -> None:
        """Forgets all."""
        self.__init__()  # type: ignore[misc]


@contextlib.contextmanager
def _answers() -> Iterator[_Answers]:
    """Notes answers to questions about sizes."""
    answers = _Answers()
    try:
        node: Any = importlib.import_module("torch.fx.experimental.sym_node").SymNode
        old = {name: getattr(node, name) for name in ("guard_bool", "guard_int", "guard_float")}
    except (ImportError, AttributeError):
        yield answers
        return

    def guard_bool(self: Any, file: str, line: int) -> bool:
        answer: bool = old["guard_bool"](self, file, line)
        answers.add(self, answer, file)
        return answer

    def number(guard: Any) -> Any:
        def guarded(self: Any, file: str, line: int) -> Any:
            # Asking makes a number of what is asked for.
            asked = copy.copy(self)
            answer = guard(self, file, line)
            answers.add_number(asked, answer, file)
            return answer

        return guarded

    try:
        node.guard_bool = guard_bool
        node.guard_int, node.guard_float = number(old["guard_int"]), number(old["guard_float"])
        yield answers
    finally:
        for name, guard in old.items():
            setattr(node, name, guard)


#: The size that dimensions have instead of 0 and 1.
_LARGER = 5


def _only_small(node: Any, answer: Any) -> bool:
    """Whether larger sizes in place of those that are 0 or 1 in the example give another answer."""
    sympy: Any = importlib.import_module("sympy")

    env = node.shape_env
    sizes = env.backed_var_to_val if hasattr(env, "backed_var_to_val") else getattr(env, "var_to_val", {})
    sizes = {symbol: sizes[symbol] for symbol in getattr(node.expr, "free_symbols", ()) if symbol in sizes}
    if min(sizes.values(), default=2) > 1:
        return False
    larger = node.expr.xreplace({symbol: size if size > 1 else sympy.Integer(_LARGER) for symbol, size in sizes.items()})
    return bool(larger) != answer if larger in (sympy.true, sympy.false) else bool(larger.is_number and larger != answer)


def _asked_by_torch() -> bool:
    """Whether a question comes from torch's own code. What Dynamo asks is the user's."""
    file, _ = _asking()
    return file.startswith(_root()) and not file.startswith(os.path.join(_root(), "_dynamo", ""))


def _place_of_user() -> str:
    """The line of the user's code that asks, if no code of torch does."""
    file, line = _asking()
    return "" if file.startswith(_root()) else f"{file}:{line}"


def _root() -> str:
    import torch

    return f"{os.path.dirname(torch.__file__)}{os.sep}"


def _asking() -> tuple[str, int]:
    """The file and line that ask for the value of a size."""
    inside = (os.path.join(_root(), "__init__.py"), os.path.join(_root(), "fx", "experimental", ""), __file__)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _condition(node: Any, answer: Any) -> Any:
    """What sizes must be for an answer, None if all sizes of the program are so."""
    try:
        sympy: Any = importlib.import_module("sympy")
        from torch.utils._sympy.value_ranges import bound_sympy

        expr = node.shape_env.replace(node.expr)
        expr = (expr if answer else sympy.Not(expr)) if isinstance(answer, bool) else sympy.Eq(expr, answer)
        return None if bound_sympy(expr, node.shape_env.var_to_range).is_singleton() else expr
    except Exception:
        # What torch's own analysis does not know.
        return None


def _of_larger(
    program: torch.export.ExportedProgram, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, strict: bool, compared: bool
) -> torch.export.ExportedProgram | None:
    """The program of an example with larger dimensions in place of those that are 0 or 1, if its results have the same sizes, and if
    ``compared`` the same numbers for the example itself. None if there is no such program."""
    larger = _larger(model, args, kwargs, shapes)
    try:
        with _answers() as answers:
            found = _export(model, *larger, shapes, strict, answers)
        one = answers.wrong or answers.narrow or answers.by_user or not _same_results(program, found)
        return None if one or (compared and not _same_numbers(found, model, args, kwargs)) else found
    except Exception:
        # Such as sizes that belong to those of other inputs.
        return None


def _same_numbers(program: torch.export.ExportedProgram, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a program computes what the module does."""
    import torch
    from torch.utils import _pytree

    from . import _verify

    made = program.module()
    # The example may be what they exclude.
    _drop_assertions(made)
    made._forward_pre_hooks.clear()
    with torch.no_grad(), _verify.keeping_buffers(model):
        results = [_pytree.tree_leaves(run(*copy.deepcopy(args), **copy.deepcopy(kwargs))) for run in (made, model)]
    return all(_verify.compare("", one, other).ok for one, other in zip(*results, strict=True) if isinstance(other, torch.Tensor))


def _larger(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
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
                wanted = min(getattr(size, "max", None) or _LARGER, _LARGER)
                shape = [wanted if at == axis % leaf.ndim else old for at, old in enumerate(grown.shape)]
                grown = grown.expand(shape).clone() if count else grown.new_zeros(shape)
        made[id(leaf)] = grown

    inputs = _combine_args(model, args, kwargs)
    _tree_map_with_path(grow, inputs if isinstance(shapes, dict) else type(shapes)(inputs.values()), shapes, tree_name="inputs")
    found: tuple[tuple[Any, ...], dict[str, Any]] = _pytree.tree_map(lambda leaf: made.get(id(leaf), leaf), (args, kwargs))
    return found


def _same_results(one: torch.export.ExportedProgram, other: torch.export.ExportedProgram) -> bool:
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


def _static(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any) -> Any:
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


def _export(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any, strict: bool, answers: _Answers | None = None
) -> torch.export.ExportedProgram:
    """One call of torch.export.export, and a second one with the dynamic shapes that the error of the first suggests. ``answers`` are
    those of the last one."""
    import torch

    options: dict[str, Any] = {}
    if "prefer_deferred_runtime_asserts_over_guards" in inspect.signature(torch.export.export).parameters:
        options["prefer_deferred_runtime_asserts_over_guards"] = True

    def export(shapes: Any) -> torch.export.ExportedProgram:
        return torch.export.export(model, args, kwargs=kwargs, dynamic_shapes=shapes, strict=strict, **options)

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
