"""What code asks about sizes while torch.export captures it, and for which sizes the answers hold.

This module uses names of torch that are not public, each with a fallback.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ._larger import LARGER


class Answers:
    """What the code asked about sizes that are 0 or 1 in the example.

    ``wrong`` are questions to which the example gives another answer than the capture. Dynamic dimensions are captured as if they were
    2 or more, which is right where torch only looks for sizes that broadcast, but not for ``if x.shape[0] == 0:``.
    ``narrow`` says that torch asked something to which larger sizes give another answer than the example does; ``by_user``, that the
    user's code did (``if x.shape[0] == 1:``), where larger sizes take another branch. ``fixed`` are numbers and branches that the code chose by sizes: node, answer and place of each.
    ``flags`` are the weights whose values the code chose by, with the place of each.
    """

    def __init__(self) -> None:
        self.wrong = self.narrow = self.by_user = False
        self.fixed: list[tuple[Any, Any, str]] = []
        self.flags: dict[str, str] = {}

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

    def conditions(self) -> dict[Any, str]:
        """What the sizes must be for these numbers and branches, with the place of each, where the program's ranges do not say it. Two
        that are one equation are left out: these sizes belong together."""
        found = {expr: place for node, answer, place in self.fixed if (expr := _condition(node, answer)) is not None}
        gaps = {expr: (expr.lts - expr.gts).expand() for expr in found if hasattr(expr, "lts")}
        opposite = {(-gap).expand() for gap in gaps.values()}
        return {expr: place for expr, place in found.items() if gaps.get(expr) not in opposite}

    def clear(self) -> None:
        """Forgets all."""
        self.__init__()  # type: ignore[misc]


@contextlib.contextmanager
def noted() -> Iterator[Answers]:
    """Notes answers to questions about sizes."""
    answers = Answers()
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


def _only_small(node: Any, answer: Any) -> bool:
    """Whether larger sizes in place of those that are 0 or 1 in the example give another answer."""
    sympy: Any = importlib.import_module("sympy")

    env = node.shape_env
    sizes = env.backed_var_to_val if hasattr(env, "backed_var_to_val") else getattr(env, "var_to_val", {})
    sizes = {symbol: sizes[symbol] for symbol in getattr(node.expr, "free_symbols", ()) if symbol in sizes}
    if min(sizes.values(), default=2) > 1:
        return False
    larger = node.expr.xreplace({symbol: size if size > 1 else sympy.Integer(LARGER) for symbol, size in sizes.items()})
    return bool(larger) != answer if larger in (sympy.true, sympy.false) else bool(larger.is_number and larger != answer)


def _asked_by_torch() -> bool:
    """Whether a question comes from torch's own code. What Dynamo asks is the user's."""
    file, _ = _asking()
    return file.startswith(root()) and not file.startswith(os.path.join(root(), "_dynamo", ""))


def _place_of_user() -> str:
    """The line of the user's code that asks, if no code of torch does."""
    file, line = _asking()
    if file.startswith(os.path.join(root(), "_dynamo", "")):
        file, line = _asking_in_dynamo()
    return "" if file.startswith(root()) else f"{file}:{line}"


def root() -> str:
    """The folder of torch, with a slash at its end."""
    import torch

    return f"{os.path.dirname(torch.__file__)}{os.sep}"


def _asking() -> tuple[str, int]:
    """The file and line that ask for the value of a size."""
    inside = (os.path.join(root(), "__init__.py"), os.path.join(root(), "fx", "experimental", ""), __file__)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _asking_in_dynamo() -> tuple[str, int]:
    """The file and line of the code that Dynamo goes through."""
    try:
        guards: Any = importlib.import_module("torch._guards")
        frame = guards.TracingContext.extract_stack()[-1]
    except (ImportError, AttributeError, IndexError):
        return root(), 0
    return frame.filename, frame.lineno


def as_text(condition: Any, names: Mapping[str, str]) -> str | None:
    """A condition in Python, with these names of sizes: ``h % 2 != 1``. None if it holds because some of them have one name."""
    sympy: Any = importlib.import_module("sympy")

    sizes = {one: sympy.Symbol(names.get(str(one), str(one)), integer=True, nonnegative=True) for one in condition.free_symbols}
    named = condition.subs(sizes)
    if named == sympy.true:
        return None
    try:
        from torch.utils._sympy.printers import PythonPrinter
    except ImportError:
        return str(named)

    class Printer(PythonPrinter):
        def _print_ToFloat(self, expr: Any) -> str:  # noqa: N802
            return f"float({self._print(expr.args[0])})"

        def _print_Float(self, expr: Any) -> str:  # noqa: N802
            return repr(float(expr))

    text: str = Printer().doprint(named)
    return text


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
