"""The log of guards: what code asks about sizes while torch.export captures it, and for which sizes
the answers hold.

This module uses names of torch that are not public, each with a fallback.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import importlib
import importlib.util
import os
from collections.abc import Callable, Generator
from typing import Any, Protocol

from .. import _conditions
from .._conditions import Condition, Expr
from .._examples import LARGER
from .._frames import line_outside, line_within, package_root, torch_root
from .._sympy import sympy
from . import _patches, _source_names


class SymNode(Protocol):
    """A ``torch.fx.experimental.sym_node.SymNode``: a size, or an expression of sizes."""

    expr: Any
    shape_env: Any


#: The file and line of code.
Place = tuple[str, int]

#: The kinds of conditions by PyTorch's prefixes of answers. Others, on strides, do not matter.
_KINDS = {"eval": "branch", "runtime_assert": "check"}

#: The folder of torch that has modules and functions as a user writes them.
_FUNCTIONAL = "nn"

#: The file that calls torch.export, and code that is not the user's.
_EXPORT = os.path.join(os.path.dirname(__file__), "_torch_export.py")
_OTHERS = (
    os.path.dirname(getattr(importlib.util.find_spec("sympy"), "origin", "")),
    contextlib.__file__,
    functools.__file__,
)


class GuardLog:
    """Questions of the code about sizes, and the answers that the capture gave.

    Dynamic dimensions are captured as if they were 2 or more, which is right where torch looks for
    sizes that broadcast, but not for ``if x.shape[0] == 0:``.
    """

    def __init__(self) -> None:
        #: Whether the example gives another answer than the capture.
        self.inconsistent = False
        #: Whether torch asked something to which larger sizes give another answer than the example.
        self.specialized_by_torch = False
        #: Whether the user's code did (``if x.shape[0] == 1:``): larger sizes take another branch.
        self.specialized_by_user = False
        #: The answers of PyTorch from which it derives others, in order, with their environments.
        self.answers: list[tuple[Any, Condition]] = []
        #: The source of each symbol of an environment.
        self.sources: dict[tuple[int, Expr], str] = {}
        #: Texts on dimensions that became static.
        self.notes: list[str] = []
        #: The weights by whose values the code chose, with the place of each.
        self.flags: dict[str, str] = {}

    def add_branch(self, node: SymNode, answer: bool, file: str) -> None:
        """Logs an answer. ``file`` is that of a question of C++."""
        hint = getattr(node, "_hint", None)
        if hint is not None and bool(hint) != answer:
            self.inconsistent = True
        else:
            self.add_number(node, answer, file)

    def add_number(self, node: SymNode, answer: object, file: str) -> None:
        """Logs a number, or an answer that is that of the example."""
        if not getattr(node.expr, "free_symbols", None):
            return
        if not _holds_only_for_small(node, answer):
            return
        if not (file or _asked_by_torch()):
            self.specialized_by_user = True
        else:
            # A size that torch itself needs as a number becomes static.
            self.specialized_by_torch = self.specialized_by_torch or isinstance(answer, bool)

    def conditions(self, symbols: Callable[[str, int], str | None]) -> list[Condition]:
        """The conditions on dynamic dimensions under which the capture is right, also one that
        failed.

        Args:
            symbols: The name of an axis of an input, by PyTorch's name of the input: None for a
                static one.
        """
        names: dict[tuple[int, Expr], Expr] = {}
        for key, source in self.sources.items():
            found = _source_names.axis(source)
            name = symbols(*found) if found else None
            if name is not None:
                names[key] = _conditions.symbol(name)
        made: dict[tuple[str, Expr], Condition] = {}
        for env, condition in self.answers:
            expr, kind = condition.expr, condition.kind
            keys = {one: (id(env), one) for one in expr.free_symbols}
            if not keys or not names.keys() >= set(keys.values()):
                continue
            known = {one: names[key] for one, key in keys.items()}
            named = _conditions.total(expr.xreplace(known))
            if named not in (sympy.true, sympy.false):
                made.setdefault((kind, named), dataclasses.replace(condition, expr=named))
        checked = {expr for kind, expr in made if kind == "branch"}
        return [c for (kind, expr), c in made.items() if kind == "branch" or expr not in checked]

    def clear(self) -> None:
        """Clears the log, except for the conditions: where sizes become narrower to meet them, they
        are asked for no more."""
        new = GuardLog()
        new.answers, new.sources, new.notes = self.answers, self.sources, self.notes
        vars(self).update(vars(new))


@contextlib.contextmanager
def logged() -> Generator[GuardLog, None, None]:
    """Logs questions about sizes in this context."""
    log = GuardLog()

    def branch(old: Callable[..., bool]) -> Callable[..., bool]:
        def guard(self: SymNode, file: str, line: int) -> bool:
            answer = old(self, file, line)
            log.add_branch(self, answer, file)
            return answer

        return guard

    def number(old: Callable[..., object]) -> Callable[..., object]:
        def guard(self: SymNode, file: str, line: int) -> object:
            # The question makes a number of the node.
            asked = copy.copy(self)
            answer = old(self, file, line)
            log.add_number(asked, answer, file)
            return answer

        return guard

    def answer(old: Callable[..., None]) -> Callable[..., None]:
        def log_guard(self: Any, prefix: str, g: Expr, *rest: Any, **options: Any) -> None:
            if kind := _KINDS.get(prefix):
                internal = _asked_by_torch(_FUNCTIONAL) and not _conditions.is_count(g)
                log.answers.append((self, Condition(g, kind, _place(), internal)))
            old(self, prefix, g, *rest, **options)

        return log_guard

    def create(old: Callable[..., Expr]) -> Callable[..., Expr]:
        def create_symbol(self: Any, value: int, source: Any, *rest: Any, **options: Any) -> Expr:
            made = old(self, value, source, *rest, **options)
            name: Any = source.name
            log.sources.setdefault((id(self), made), str(name() if callable(name) else name))
            return made

        return create_symbol

    groups: dict[str, dict[str, Callable[[Any], object]]] = {
        "guards": {"guard_bool": branch, "guard_int": number, "guard_float": number},
        "conditions": {"_log_guard": answer, "create_symbol": create},
    }
    with contextlib.ExitStack() as stack:
        for use, make in groups.items():
            with contextlib.suppress(ImportError, AttributeError):
                stack.enter_context(_patches.applied(use, make))
        yield log


def _holds_only_for_small(node: SymNode, answer: object) -> bool:
    """Whether larger sizes in place of those that are 0 or 1 in the example give another answer."""
    env = node.shape_env
    known = getattr(env, "backed_var_to_val", None)
    known = getattr(env, "var_to_val", {}) if known is None else known
    sizes = {symbol: known[symbol] for symbol in node.expr.free_symbols if symbol in known}
    if min(sizes.values(), default=2) > 1:
        return False
    grown = {symbol: size if size > 1 else sympy.Integer(LARGER) for symbol, size in sizes.items()}
    larger = node.expr.xreplace(grown)
    if larger in (sympy.true, sympy.false):
        return bool(larger) != answer
    return bool(larger.is_number and larger != answer)


def _asked_by_torch(*others: str) -> bool:
    """Whether a question comes from torch's own code. Questions of Dynamo are the user's, and those
    of the folders ``others``."""
    file, _ = _asking_line()
    own = tuple(os.path.join(torch_root(), one, "") for one in (*others, "_dynamo"))
    return file.startswith(torch_root()) and not file.startswith(own)


def _place() -> Place | None:
    """The file and line of the user's code that asks, also by way of code of torch."""
    file, line = _dynamo_line()
    if not file.startswith(torch_root()):
        return file, line
    return line_within(_EXPORT, torch_root(), package_root(), *_OTHERS, "<")


def _asking_line() -> tuple[str, int]:
    """The file and line that ask for the value of a size."""
    root = torch_root()
    own = os.path.join(root, "__init__.py"), os.path.join(root, "fx", "experimental", "")
    return line_outside(*own, __file__, *_OTHERS)


def _dynamo_line() -> tuple[str, int]:
    """The file and line of the code that Dynamo goes through."""
    try:
        guards = importlib.import_module("torch._guards")
        frame = guards.TracingContext.extract_stack()[-1]
    except (ImportError, AttributeError, IndexError):
        return torch_root(), 0
    return frame.filename, frame.lineno
