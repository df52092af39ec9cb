"""Conditions on sizes: relations of SymPy whose symbols are names of dimensions."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import linecache
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._sympy import sympy

torch = importlib.import_module("torch")

#: An expression of SymPy, which has no types.
Expr = Any

#: A size of each dimension.
Point = Mapping[str, int]

#: Numbers from here on are left out: such code looks for tensors that are larger than any.
FAR = 1 << 20


@dataclasses.dataclass(frozen=True)
class Condition:
    """A condition on sizes under which a capture is right.

    ``kind`` is ``branch`` for an answer to the code, ``check`` where PyTorch fails otherwise.
    ``place`` is the file and line of the user's code that decides by it, if it is known.
    ``internal`` is whether code of torch asks for one of several ways to compute the same.
    """

    expr: Expr
    kind: str = "branch"
    place: tuple[str, int] | None = None
    internal: bool = False

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The names of its dimensions."""
        return frozenset(map(str, self.expr.free_symbols))

    def holds(self, point: Point) -> bool:
        """Whether it holds at a point, also where that is unknown."""
        return holds(self.expr, point) is not False

    def side(self, point: Point) -> int:
        """Whether it holds at a point; of an equality, or an inequality, the sign of the difference
        of both sides: it may change twice where a condition holds at one place only."""
        if not isinstance(self.expr, (sympy.Eq, sympy.Ne)):
            return self.holds(point)
        try:
            left, right = value(self.expr.lhs, point), value(self.expr.rhs, point)
        except ZeroDivisionError:
            return 1
        return 0 if left is None or right is None else (left > right) - (left < right)

    @property
    def numbers(self) -> list[int]:
        """Its numbers without signs, except those that are far larger than sizes."""
        found = (abs(int(number)) for number in self.expr.atoms(sympy.Integer))
        return sorted({number for number in found if 0 < number < FAR})

    @functools.cached_property
    def key(self) -> Expr:
        """The same for conditions that say the same."""
        return _canonical(self.expr)

    @functools.cached_property
    def opposite(self) -> Expr:
        """The key of the opposite."""
        return _canonical(sympy.Not(self.expr))

    @property
    def text(self) -> str:
        """The condition as SymPy and Rust have it."""
        return str(self.expr)

    @property
    def where(self) -> str:
        """The line that decides by it, with its text."""
        if self.place is None:
            return "a place that is not known"
        text = linecache.getline(*self.place).strip()
        place = f"{self.place[0]}:{self.place[1]}"
        return f"{place}: `{text}`" if text else place


def symbol(name: str) -> Expr:
    """The symbol of a dimension."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


def total(expr: Expr) -> Expr:
    """An expression that has a value at all sizes: a model computes also conditions that the code
    does not ask for there, such as ``10 // (t // 2)`` for a size of 1."""
    if not any(map(_may_fail, expr.atoms(sympy.Function))):
        return expr
    return expr.replace(_may_fail, _total)


def _total(division: Expr) -> Expr:
    dividend, divisor = division.args
    return division.func(dividend, _larger(1, divisor))


#: Functions of a dividend and a divisor.
_DIVISIONS = frozenset(("FloorDiv", "CleanDiv", "Mod", "PythonMod"))


def _may_fail(expr: Expr) -> bool:
    """Whether it is a division by a size that may be 0."""
    if type(expr).__name__ not in _DIVISIONS:
        return False
    divisor = expr.args[1]
    return not (divisor.is_number or divisor.is_positive)


def _larger(a: int, b: Expr) -> Expr:
    functions = importlib.import_module("torch.utils._sympy.functions")
    return getattr(functions, "Max", sympy.Max)(sympy.Integer(a), b)


def _canonical(expr: Expr) -> Expr:
    return expr.canonical if getattr(expr, "is_Relational", False) else expr


def equal(name: str, size: int) -> Expr:
    """The relation that a dimension has a size."""
    return sympy.Eq(symbol(name), size)


#: Expressions as functions of their sizes in order of names; None for those that SymPy computes.
_FUNCTIONS: dict[Expr, Callable[..., object] | None] = {}

#: How many there are at most.
_MOST_FUNCTIONS = 10_000


def _floor_div(a: int, b: int) -> int:
    return a // b


#: The functions that conditions have.
_KNOWN: dict[str, object] = {
    **{"math": math, "torch": torch, "Max": max, "Min": min},
    **{"FloorDiv": _floor_div, "Mod": operator.mod, "PythonMod": operator.mod},
}


def is_count(expr: Expr) -> bool:
    """Whether a relation has a number that is computed from sizes be another one than 1, as that of
    pieces: no code computes the same where it does not hold."""
    if not expr.is_Equality or expr.lhs.is_Symbol or expr.rhs.is_Symbol:
        return False
    return any(side.is_Integer and side > 1 for side in expr.args)


def holds(expr: Expr, point: Point) -> bool | None:
    """Whether a relation holds at a point; None if that is unknown."""
    if expr in (sympy.true, sympy.false):
        return bool(expr)
    try:
        found = value(expr, point)
    except ZeroDivisionError:
        return False
    return None if found is None else bool(found)


def truths(expr: Expr, points: Sequence[Point]) -> list[bool | None]:
    """Whether a relation holds at points that have all of its sizes, as ``holds``."""
    names: list[str] = sorted(map(str, expr.free_symbols))
    known: dict[tuple[int, ...], bool | None] = {}
    found: list[bool | None] = []
    for point in points:
        key = tuple(point[name] for name in names)
        if key not in known:
            known[key] = holds(expr, point)
        found.append(known[key])
    return found


def value(expr: Expr, point: Point) -> Any:
    """The value of an expression at a point; None if it is unknown.

    Raises:
        ZeroDivisionError: It has none.
    """
    symbols: list[Expr] = sorted(expr.free_symbols, key=str)
    try:
        sizes = [point[str(one)] for one in symbols]
    except KeyError:
        return None
    if expr not in _FUNCTIONS:
        if len(_FUNCTIONS) > _MOST_FUNCTIONS:
            _FUNCTIONS.clear()
        _FUNCTIONS[expr] = _function(expr, symbols)
    if function := _FUNCTIONS[expr]:
        try:
            return function(*sizes)
        except ZeroDivisionError:
            raise
        except Exception:
            _FUNCTIONS[expr] = None
    numbers: list[Expr] = [sympy.Integer(size) for size in sizes]
    found = expr.xreplace(dict(zip(symbols, numbers, strict=True)))
    if found in (sympy.true, sympy.false):
        return bool(found)
    return int(found) if getattr(found, "is_Integer", False) else None


def _function(expr: Expr, symbols: list[Expr]) -> Callable[..., object] | None:
    """An expression as a function of its symbols; None if there is none."""
    own = {one: sympy.Symbol(f"_{at}") for at, one in enumerate(symbols)}
    try:
        text = f"lambda {', '.join(map(str, own.values()))}: {_printed(expr.xreplace(own))}"
        function: Callable[..., object] = eval(text, dict(_KNOWN))
    except Exception:
        return None
    return function


def as_text(condition: Expr, names: Mapping[str, str]) -> str:
    """A condition in Python: ``h % 2 != 1``.

    Args:
        condition: A relation of SymPy.
        names: Names of sizes by symbol.
    """
    sizes = {one: symbol(names.get(str(one), str(one))) for one in condition.free_symbols}
    named = condition.subs(sizes)
    return _printed(_as_remainders(named) if hasattr(named, "lhs") else named)


def _printed(expr: Expr) -> str:
    try:
        printers = importlib.import_module("torch.utils._sympy.printers")
        return str(_printer(printers.PythonPrinter).doprint(expr))
    except (ImportError, AttributeError):
        return str(expr)


def _printer(base: Any) -> Any:
    """torch's printer of expressions, with floats as Python has them."""

    def to_float(self: Any, expr: Expr) -> str:
        return f"float({self._print(expr.args[0])})"

    def number(self: object, expr: Expr) -> str:
        return repr(float(expr))

    return type("Printer", (base,), {"_print_ToFloat": to_float, "_print_Float": number})()


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
