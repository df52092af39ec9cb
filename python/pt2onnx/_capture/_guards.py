"""The log of guards: what code asks about sizes while torch.export captures it, and for which sizes
the answers hold.

This module uses names of torch that are not public, each with a fallback.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import os
from collections.abc import Callable, Generator, Mapping
from typing import Any, Protocol

from .._examples import LARGER
from .._frames import line_outside, torch_root
from . import _patches

sympy = importlib.import_module("sympy")


class SymNode(Protocol):
    """A ``torch.fx.experimental.sym_node.SymNode``: a size, or an expression of sizes."""

    expr: Any
    shape_env: Any


#: Conditions with a larger bound than this are left out.
_FAR = 2**28

#: An expression of SymPy, which has no types.
Expr = Any


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
        #: Numbers and branches that the code chose by sizes: node, answer and place of each.
        self.fixed: list[tuple[SymNode, object, str]] = []
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
        place = "" if file else _user_line()
        if not _holds_only_for_small(node, answer):
            self.fixed += [(node, answer, place)] if place else []
        elif place or not (file or _asked_by_torch()):
            self.specialized_by_user = True
        else:
            # A size that torch itself needs as a number becomes static.
            self.specialized_by_torch = self.specialized_by_torch or isinstance(answer, bool)

    def conditions(self) -> dict[Expr, str]:
        """Conditions on the sizes under which these numbers and branches are right, with the place
        of each, unless the program's ranges imply them.

        Two that are one equation are left out: these sizes belong together.
        """
        pairs = ((_condition(node, answer), place) for node, answer, place in self.fixed)
        found = {expr: place for expr, place in pairs if expr is not None and not _is_far(expr)}
        gaps = {expr: (expr.lts - expr.gts).expand() for expr in found if hasattr(expr, "lts")}
        opposite = {(-gap).expand() for gap in gaps.values()}
        return {expr: place for expr, place in found.items() if gaps.get(expr) not in opposite}

    def clear(self) -> None:
        """Clears the log."""
        vars(self).update(vars(GuardLog()))


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

    with contextlib.ExitStack() as stack:
        make = {"guard_bool": branch, "guard_int": number, "guard_float": number}
        with contextlib.suppress(ImportError, AttributeError):
            stack.enter_context(_patches.applied("guards", make))
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


def _asked_by_torch() -> bool:
    """Whether a question comes from torch's own code. Questions of Dynamo are the user's."""
    file, _ = _asking_line()
    return file.startswith(torch_root()) and not file.startswith(_dynamo())


def _user_line() -> str:
    """The line of the user's code that asks; empty if code of torch does."""
    file, line = _asking_line()
    if file.startswith(_dynamo()):
        file, line = _dynamo_line()
    return "" if file.startswith(torch_root()) else f"{file}:{line}"


def _dynamo() -> str:
    return os.path.join(torch_root(), "_dynamo", "")


def _asking_line() -> tuple[str, int]:
    """The file and line that ask for the value of a size."""
    root = torch_root()
    own = os.path.join(root, "__init__.py"), os.path.join(root, "fx", "experimental", "")
    return line_outside(*own, __file__)


def _dynamo_line() -> tuple[str, int]:
    """The file and line of the code that Dynamo goes through."""
    try:
        guards = importlib.import_module("torch._guards")
        frame = guards.TracingContext.extract_stack()[-1]
    except (ImportError, AttributeError, IndexError):
        return torch_root(), 0
    return frame.filename, frame.lineno


def as_text(condition: Expr, names: Mapping[str, str]) -> str | None:
    """A condition in Python: ``h % 2 != 1``.

    Args:
        condition: A relation of SymPy.
        names: Names of sizes by symbol.

    Returns:
        The text; None if the condition holds because some of the sizes have one name.
    """
    sizes = {
        symbol: sympy.Symbol(names.get(str(symbol), str(symbol)), integer=True, nonnegative=True)
        for symbol in condition.free_symbols
    }
    named = condition.subs(sizes)
    if named == sympy.true:
        return None
    if hasattr(named, "lhs"):
        named = _as_remainders(named)
    try:
        printers = importlib.import_module("torch.utils._sympy.printers")
        printer = _printer(printers.PythonPrinter)
    except (ImportError, AttributeError):
        return str(named)
    return str(printer.doprint(named))


def _printer(base: Any) -> Any:
    """torch's printer of expressions, with floats as Python has them."""

    def to_float(self: Any, expr: Expr) -> str:
        return f"float({self._print(expr.args[0])})"

    def number(self: object, expr: Expr) -> str:
        return repr(float(expr))

    return type("Printer", (base,), {"_print_ToFloat": to_float, "_print_Float": number})()


def _is_far(condition: Expr) -> bool:
    """Whether a condition holds unless tensors are larger than any: code that has another way for
    such tensors looks for more than 2**31 elements."""
    return bool(hasattr(condition, "gts") and condition.gts.is_number and condition.gts >= _FAR)


def _as_remainders(expr: Expr) -> Expr:
    """An expression with ``t % 8`` for ``t - 8 * (t // 8)``."""
    for floor in [part for part in sympy.preorder_traversal(expr) if _is_floor_div(part)]:
        dividend, divisor = floor.args
        remainder = sympy.Symbol(f"({dividend} % {divisor})", integer=True)
        shorter = expr.xreplace({floor: (dividend - remainder) / divisor})
        gap = sympy.expand(shorter.lhs - shorter.rhs)
        gap = -gap if gap.could_extract_minus_sign() else gap
        if isinstance(expr, (sympy.Eq, sympy.Ne)):
            shorter = expr.func(gap, 0)
        if shorter.count_ops() < expr.count_ops():
            expr = shorter
    return expr


def _is_floor_div(expr: Expr) -> bool:
    return type(expr).__name__ == "FloorDiv"


def _condition(node: SymNode, answer: object) -> Expr:
    """The condition on sizes under which an answer is right; None if it is for all of the
    program."""
    try:
        ranges = importlib.import_module("torch.utils._sympy.value_ranges")
        expr = node.shape_env.replace(node.expr)
        if not isinstance(answer, bool):
            expr = sympy.Eq(expr, answer)
        elif not answer:
            expr = sympy.Not(expr)
        bounds = ranges.bound_sympy(expr, node.shape_env.var_to_range)
        return None if bounds.is_singleton() else expr
    except Exception:
        # torch's own analysis does not know such expressions.
        return None
