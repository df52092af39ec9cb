"""Loops over tokens in the code of models, as ``torch.scan`` while they are captured.

The recurrent layers of transformers have loops such as ``for i in range(length): state = f(state,
x[:, i]); out[:, i] = g(state)``. A capture would unroll them, and so fix the length. The functions
with such loops are compiled again, so that a loop whose number of rounds is symbolic becomes a
scan.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, cast

import torch
from torch._higher_order_ops.scan import scan

from .._capture import _patches

#: The name under which compiled functions find this module.
_SELF = "__pt2onnx_loops"


#: Functions over chunks of tokens, and those that compute the same token by token.
_BY_TOKEN = {
    "torch_chunk_gated_delta_rule": "torch_recurrent_gated_delta_rule",
    "chunk_kimi_delta_attention": "recurrent_kimi_delta_attention",
}

#: Functions over chunks of tokens that may be one chunk, which is the form of attention.
_ONE_CHUNK = ("mamba2_chunk_scan",)


class Rows:
    """The values that the rounds of a loop append to a list, as one tensor of rows."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows


def is_symbolic(rounds: object) -> bool:
    """Whether a number of rounds is not known to the capture."""
    return isinstance(rounds, torch.SymInt) and rounds.node.maybe_as_int() is None


def item(value: torch.Tensor, steps: tuple[Any, ...], at: torch.Tensor, kept: bool) -> Any:
    """``value[steps]``, where the step ``at`` is a tensor of an index; the axis may be kept."""
    axis = _axis(value.dim(), steps, at)
    taken = value.index_select(axis, at.reshape(1))
    if kept:
        return taken[tuple(slice(None) if step is at else step for step in steps)]
    return taken.squeeze(axis)[tuple(step for step in steps if step is not at)]


def _axis(dims: int, steps: Sequence[Any], at: object) -> int:
    place = next(i for i, step in enumerate(steps) if step is at)
    after = steps[place + 1 :]
    return dims - 1 - len(after) if Ellipsis in steps[:place] else place


def run(
    body: Callable[..., Any], carried: Sequence[Any], rounds: Any, kinds: Sequence[object]
) -> tuple[list[Any], list[Any]]:
    """The carried values after all rounds, and what they append or write.

    Args:
        body: One round: from the carried values and the index to new ones and rows.
        carried: The values before the first round.
        rounds: The number of rounds.
        kinds: For each row, None if it is appended to a list; or the tensor and the key that it is
            written to, where the index is ``index``.
    """
    steps = torch.arange(rounds)
    numbers = [one if isinstance(one, torch.Tensor) else torch.tensor(one) for one in carried]
    # A scan takes no views of its operands.
    starts = [one.clone() for one in numbers]

    def one_round(state: Any, at: torch.Tensor) -> Any:
        # The operands of the scan must not be used here: torch takes them for the state.
        new, rows = body(state, at)
        pairs = zip(new, state, strict=True)
        same = [value.to(old.dtype).expand(old.shape).clone() for value, old in pairs]
        return same, [row.clone() for row in rows]

    ends, rows = scan(one_round, starts, steps)
    return list(ends), [_placed(row, kind) for row, kind in zip(rows, kinds, strict=True)]


#: Stands for the index of a loop in a key.
index = object()


def _placed(rows: torch.Tensor, kind: Any) -> Any:
    if kind is None:
        return Rows(rows)
    written, key = kind
    steps: tuple[Any, ...] = cast(Any, key) if isinstance(key, tuple) else (key,)
    axis = _axis(written.dim(), steps, index)
    if written.shape[axis] != rows.shape[0]:
        raise NotImplementedError(
            f"a loop over tokens writes {rows.shape[0]} of {written.shape[axis]} rows of a tensor"
        )
    return rows.movedim(0, axis).to(written.dtype)


def stack(values: Any, dim: int = 0) -> Any:
    """``torch.stack``, also of rows."""
    return values.rows.movedim(0, dim) if isinstance(values, Rows) else torch.stack(values, dim)


def cat(values: Any, dim: int = 0) -> Any:
    """``torch.cat``, also of rows."""
    if not isinstance(values, Rows):
        return torch.cat(values, dim)
    axis = dim % (values.rows.dim() - 1)
    return values.rows.movedim(0, axis).flatten(axis, axis + 1)


@contextlib.contextmanager
def scanned(model: torch.nn.Module) -> Generator[None, None, None]:
    """Replaces the functions with loops in the modules that define a model's layers."""
    names = {type(layer).__module__ for layer in model.modules()}
    with contextlib.ExitStack() as stack_of_patches:
        for name in sorted(names):
            if name.startswith("torch."):
                continue
            for holder, attribute, made in _rewritten(sys.modules[name]):
                stack_of_patches.enter_context(_patches.replaced(holder, attribute, made))
        yield


@functools.cache
def _rewritten(module: types.ModuleType) -> list[tuple[object, str, object]]:
    """The functions of a module that are replaced, with the objects that hold them."""
    found = [*_with_scans(module), *_without_chunks(module)]
    return [(module, _SELF, sys.modules[__name__]), *found] if found else []


def _without_chunks(module: types.ModuleType) -> Iterable[tuple[object, str, object]]:
    """The functions whose number of chunks depends on the length."""
    own = vars(module)
    for name, other in _BY_TOKEN.items():
        if name in own and other in own:
            yield module, name, _by_token(own[name], inspect.unwrap(own[other]))
    for name in _ONE_CHUNK:
        if name in own:
            yield module, name, _in_one_chunk(own[name])


def _by_token(chunked: Callable[..., Any], recurrent: Any) -> Callable[..., Any]:
    scanned_function = cast(Callable[..., Any], _compiled(recurrent) or recurrent)

    @functools.wraps(chunked)
    def chosen(query: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        of_size = is_symbolic(query.shape[1])
        return (scanned_function if of_size else chunked)(query, *args, **kwargs)

    return chosen


def _in_one_chunk(chunked: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(chunked)
    def chosen(states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        length = states.shape[1]
        if is_symbolic(length) and "chunk_size" in kwargs:
            kwargs["chunk_size"] = length
        return chunked(states, *args, **kwargs)

    return chosen


def _with_scans(module: types.ModuleType) -> Iterable[tuple[object, str, object]]:
    """The functions of a module that have loops, with the objects that hold them."""
    classes = [one for one in vars(module).values() if inspect.isclass(one)]
    own = [one for one in classes if one.__module__ == module.__name__]
    for holder in (module, *own):
        for name, value in list(vars(holder).items()):
            function = inspect.unwrap(value) if inspect.isfunction(value) else None
            if function is None or function.__module__ != module.__name__:
                continue
            made = _compiled(function)
            if made is not None:
                yield holder, name, made


def _compiled(function: types.FunctionType) -> object:
    """The function with its loops as scans; None if it has none."""
    if function.__closure__ or "range" not in function.__code__.co_names:
        return None
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return None
    tree = ast.parse(source)
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        return None
    rewriter = _Rewriter(definition)
    rewriter.visit(definition)
    if not rewriter.changed:
        return None
    definition.decorator_list = []
    definition.returns = None
    for argument in ast.walk(definition.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    ast.fix_missing_locations(tree)
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    names = {**function.__globals__, _SELF: sys.modules[__name__]}
    made: dict[str, object] = {}
    exec(compile(tree, function.__code__.co_filename, "exec"), names, made)
    new: Any = made[definition.name]
    # Other functions of its module may be replaced, too, so that it has the globals of these.
    result = types.FunctionType(new.__code__, function.__globals__, function.__name__)
    result.__defaults__, result.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return result


class _Rewriter(ast.NodeTransformer):
    """Replaces the loops of a function."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.function = function
        self.changed = False
        self._lists: set[str] = set()

    def visit_For(self, node: ast.For) -> Any:
        found = _Loop.of(node, self.function)
        if found is None:
            return self.generic_visit(node)
        self.changed = True
        self._lists.update(found.lists)
        return found.code()

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        called, first = ast.unparse(node.func), node.args[0] if node.args else None
        of_list = isinstance(first, ast.Name) and first.id in self._lists
        if called in ("torch.stack", "torch.cat") and of_list:
            node.func = ast.parse(f"{_SELF}.{called.partition('.')[2]}", mode="eval").body
        return node


class _Loop:
    """A loop over a range, whose body has no jumps."""

    def __init__(self, node: ast.For, target: str, rounds: ast.expr) -> None:
        self.node, self.target, self.rounds = node, target, rounds
        self.lists: list[str] = []
        self.carried: list[str] = []
        self.rows: list[str] = []
        self.kinds: list[str] = []
        self.written: list[str] = []
        self.body: list[ast.stmt] = []
        self.read: list[str] = []

    @classmethod
    def of(cls, node: ast.For, function: ast.FunctionDef) -> _Loop | None:
        """The loop of a statement; None if it has another form."""
        call = node.iter
        if not isinstance(call, ast.Call) or ast.unparse(call.func) != "range":
            return None
        if len(call.args) != 1 or isinstance(call.args[0], ast.Constant):
            return None
        jumps = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.For, ast.While)
        inner = [one for statement in node.body for one in ast.walk(statement)]
        if node.orelse or any(isinstance(one, jumps) for one in inner):
            return None
        if not isinstance(node.target, ast.Name):
            return None
        loop = cls(node, node.target.id, call.args[0])
        return loop if loop._take(function) else None

    def _take(self, function: ast.FunctionDef) -> bool:
        """Fills the fields. False if a statement has another form."""
        events = [event for statement in self.node.body for event in _events(statement)]
        stored = list(dict.fromkeys(name for name, store in events if store))
        for name in stored:
            first = next(store for other, store in events if other == name)
            if not first or _is_read_after(name, self.node, function):
                self.carried.append(name)
        return all(self._statement(statement) for statement in self.node.body)

    def _statement(self, statement: ast.stmt) -> bool:
        row: ast.expr | None = None
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            if not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
                return False
            if not isinstance(call.func.value, ast.Name):
                return False
            self.lists.append(call.func.value.id)
            self.written.append(call.func.value.id)
            self.kinds.append("None")
            row = call.args[0]
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
            target = statement.targets[0]
            steps = _steps(target.slice)
            if not isinstance(target.value, ast.Name) or not self._has_index(steps):
                return False
            self.written.append(target.value.id)
            key = ast.unparse(_Indexed(self.target, f"{_SELF}.index").visit(_key(target.slice)))
            self.kinds.append(f"({target.value.id}, {key})")
            row = statement.value
        if row is not None:
            name = f"__row_{len(self.rows)}"
            self.rows.append(name)
            # The index of an assignment is in the value, too.
            statement = ast.Assign([ast.Name(name, ast.Store())], row, lineno=statement.lineno)
        items = _Items(self.target)
        self.body.append(items.visit(_copied(statement)))
        self.read += [name for name in items.read if name not in (*self.read, *self.carried)]
        return True

    def _has_index(self, steps: list[ast.expr]) -> bool:
        return any(isinstance(step, ast.Name) and step.id == self.target for step in steps)

    def code(self) -> list[ast.stmt]:
        """The statements in place of the loop."""
        rounds, names = ast.unparse(self.rounds), "".join(f"{name}, " for name in self.carried)
        rows = "".join(f"{name}, " for name in self.rows)
        kinds, written = ", ".join(self.kinds), "".join(f"{name}, " for name in self.written)
        take = f"({names}) = __state" if names else "pass"
        ends = f"({names})" if names else "__ends"
        results = f"({written})" if written else "__rows"
        # A scan refuses operands that share memory.
        own = "; ".join(f"{name} = {name}.clone()" for name in self.read) or "pass"
        text = f"""
if {_SELF}.is_symbolic({rounds}):
    {own}
    def __body(__state, {self.target}):
        {take}
        return [{names}], [{rows}]
    {ends}, {results} = {_SELF}.run(__body, [{names}], {rounds}, [{kinds}])
else:
    pass
"""
        made = ast.parse(text).body[0]
        assert isinstance(made, ast.If)
        body = next(one for one in made.body if isinstance(one, ast.FunctionDef))
        body.body[1:1] = self.body
        made.orelse = [self.node]
        return [made]


def _copied(node: Any) -> Any:
    return ast.parse(ast.unparse(node)).body[0]


def _key(node: ast.expr) -> ast.expr:
    """A subscript as an expression: slices as calls."""
    steps = [_as_expression(step) for step in _steps(node)]
    return steps[0] if len(steps) == 1 else ast.Tuple(steps, ast.Load())


def _as_expression(step: ast.expr) -> ast.expr:
    if not isinstance(step, ast.Slice):
        return step
    parts = [part or ast.Constant(None) for part in (step.lower, step.upper, step.step)]
    return ast.Call(ast.Name("slice", ast.Load()), parts, [])


def _steps(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


class _Indexed(ast.NodeTransformer):
    """Replaces a name by an expression."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(self._text, mode="eval").body if node.id == self._name else node


class _Items(ast.NodeTransformer):
    """Reads ``x[:, i]`` and ``x[:, i : i + 1]`` by ``item``."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._slice = f"{target}:{target} + 1"
        self.read: list[str] = []

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        steps = [ast.unparse(step) for step in _steps(node.slice)]
        if not isinstance(node.ctx, ast.Load):
            return node
        if self._target not in steps and self._slice not in steps:
            return node
        kept = self._target not in steps
        if isinstance(node.value, ast.Name):
            self.read.append(node.value.id)
        parts = [
            ast.Name(self._target, ast.Load()) if text == self._slice else _as_expression(step)
            for text, step in zip(steps, _steps(node.slice), strict=True)
        ]
        function = ast.parse(f"{_SELF}.item", mode="eval").body
        key = ast.Tuple(parts, ast.Load())
        index = ast.Name(self._target, ast.Load())
        return ast.Call(function, [node.value, key, index, ast.Constant(kept)], [])


def _events(node: ast.AST) -> list[tuple[str, bool]]:
    """The names that a statement reads and stores (True), in the order of evaluation."""
    if isinstance(node, ast.Name):
        return [(node.id, isinstance(node.ctx, ast.Store))]
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.Assign):
        children = (node.value, *node.targets)
    if isinstance(node, ast.AugAssign):
        name = node.target.id if isinstance(node.target, ast.Name) else None
        read = [(name, False)] if name else _events(node.target)
        return [*_events(node.value), *read, *([(name, True)] if name else [])]
    return [event for child in children for event in _events(child)]


def _is_read_after(name: str, loop: ast.For, function: ast.FunctionDef) -> bool:
    """Whether a name is read after a loop before it is stored, in the order of the text."""
    end = loop.end_lineno or 0
    later = (
        (node.lineno, event)
        for node in ast.walk(function)
        if isinstance(node, ast.stmt) and node.lineno > end and not hasattr(node, "body")
        for event in _events(node)
    )
    found = sorted(
        ((line, i, store) for i, (line, (other, store)) in enumerate(later) if other == name),
    )
    return bool(found) and not found[0][2]
