"""Random modules that look at sizes: branches, pieces, loops and numbers, one within the other.

A module is drawn from a seed, as source text: TorchScript reads it. Its argument ``x`` is
``[b, t, 4]``, and so is each intermediate ``x``, with other sizes.
"""

from __future__ import annotations

import random
from collections.abc import Callable

#: The sizes of the example.
EXAMPLE = {"b": 2, "t": 6}

_HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn


class Drawn(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
"""

_PLAIN = (
    "x = x * 2 + 1",
    "x = torch.tanh(x)",
    "x = x.flip(1)",
    "x = x.cumsum(1)",
    "x = x + x.mean(1, keepdim=True)",
    "x = x - x.amax(0, keepdim=True)",
)

#: Functions of a piece.
_PIECE = ("{}.flip(1)", "{}.cumsum(1)", "{} + {}.mean(1, keepdim=True)", "{} * {}.shape[1]")


class Source:
    """The text of a module, line by line, and the numbers that it compares sizes with."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.lines: list[str] = []
        self.numbers: set[int] = set()
        self._names = 0
        for _ in range(self.draw.choice([1, 2, 2, 3])):
            self._statement(2, 0)
        if self.draw.random() < 0.06:
            # TorchScript does not take it.
            self._line(2, "x = (lambda y: y * 2)(x)")
        self._line(2, "return x")

    @property
    def text(self) -> str:
        """The module ``Drawn``."""
        return _HEAD + "".join(self.lines)

    def points(self) -> list[dict[str, int]]:
        """The sizes to compare at: the example, 1, both sides of each number, and others."""
        sizes = {1, 2, 5, 7, 12, 13, 17, 40}
        sizes.update(size for number in self.numbers for size in (number - 1, number, number + 1))
        points = [EXAMPLE, *({"b": 2, "t": t} for t in sorted(sizes - {0}))]
        return points + [{"b": b, "t": t} for b in (1, 3, 5, 9) for t in (1, 6, 9)]

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text + "\n")

    def _number(self) -> int:
        number = self.draw.choice([2, 3, 4, 5, 6, 7, 8, 10, 12])
        self.numbers.add(number)
        return number

    def _name(self) -> str:
        self._names += 1
        return f"y{self._names}"

    def _statement(self, depth: int, within: int) -> None:
        kinds: list[tuple[Callable[[int, int], None], int]] = [
            (self._plain, 3),
            (self._branch, 0 if within > 1 else 6),
            (self._pieces, 4),
            (self._blocks, 2),
            (self._steps, 2),
            (self._halves, 1),
            (self._cut, 3),
            (self._scaled, 2),
        ]
        weights = [weight for _, weight in kinds]
        self.draw.choices([kind for kind, _ in kinds], weights)[0](depth, within)

    def _plain(self, depth: int, within: int) -> None:
        self._line(depth, self.draw.choice(_PLAIN))

    def _condition(self) -> str:
        draw = self.draw
        axis = draw.choice([0, 1, 1, 1])
        kind = draw.random()
        if kind < 0.15:
            number, sign = draw.choice([2, 3, 4]), draw.choice(["==", "!="])
            return f"x.shape[{axis}] % {number} {sign} {draw.randrange(number)}"
        if kind < 0.25:
            return f"x.shape[0] {draw.choice(['<', '>='])} x.shape[1]"
        if kind < 0.35:
            joined = draw.choice(["and", "or"])
            return f"x.shape[1] > {self._number()} {joined} x.shape[0] <= {self._number()}"
        return f"x.shape[{axis}] {draw.choice(['<', '<=', '>', '>=', '==', '!='])} {self._number()}"

    def _branch(self, depth: int, within: int) -> None:
        self._line(depth, f"if {self._condition()}:")
        self._body(depth + 1, within + 1)
        if self.draw.random() < 0.2:
            self._line(depth + 1, "return x * 3")
        elif self.draw.random() < 0.5:
            self._line(depth, "else:")
            self._body(depth + 1, within + 1)

    def _body(self, depth: int, within: int) -> None:
        for _ in range(self.draw.choice([1, 1, 2])):
            self._statement(depth, within)

    def _piece(self, name: str) -> str:
        return self.draw.choice(_PIECE).replace("{}", name)

    def _pieces(self, depth: int, within: int) -> None:
        taken = self.draw.choice(["split", "split", "chunk", "tensor_split"])
        pieces = f"x.{taken}({self._number()}, dim=1)"
        self._line(depth, f"x = torch.cat([{self._piece('p')} for p in {pieces}], 1)")

    def _blocks(self, depth: int, within: int) -> None:
        step = self._number()
        piece = self._piece(f"x[:, i : i + {step}]")
        if self.draw.random() < 0.5:
            over = f"range(0, x.shape[1], {step})"
            self._line(depth, f"x = torch.cat([{piece} for i in {over}], 1)")
            return
        parts = self._name()
        self._line(depth, f"{parts} = []")
        self._line(depth, f"for i in range(0, x.shape[1], {step}):")
        self._line(depth + 1, f"{parts}.append({piece})")
        self._line(depth, f"x = torch.cat({parts}, 1)")

    def _steps(self, depth: int, within: int) -> None:
        y = self._name()
        self._line(depth, f"{y} = x[:, 0] * 0")
        if self.draw.random() < 0.5:
            self._line(depth, "for r in x.unbind(1):")
            self._line(depth + 1, f"{y} = torch.tanh({y} + r)")
        else:
            self._line(depth, "for i in range(x.shape[1]):")
            if self.draw.random() < 0.3:
                self._line(depth + 1, f"if i < {self._number()}:")
                self._line(depth + 2, f"{y} = torch.tanh({y} + x[:, i])")
            else:
                self._line(depth + 1, f"{y} = torch.tanh({y} + x[:, i])")
        self._line(depth, f"x = x + {y}[:, None]")

    def _halves(self, depth: int, within: int) -> None:
        n = self._name()
        self._line(depth, f"{n} = x.shape[1]")
        self._line(depth, f"while {n} > {self._number()}:")
        self._line(depth + 1, "x = x * 0.5 + 1")
        self._line(depth + 1, f"{n} = {n} // 2")

    def _cut(self, depth: int, within: int) -> None:
        number = self._number()
        texts = (
            f"x = x[:, -{number}:]",
            f"x = x[:, :{number}]",
            f"x = F.pad(x, (0, 0, 0, max(0, {number} - x.shape[1])))",
            f"x = F.pad(x, (0, 0, 0, -x.shape[1] % {number}))",
        )
        self._line(depth, self.draw.choice(texts))

    def _scaled(self, depth: int, within: int) -> None:
        texts = (
            "x = x * (x.shape[1] / 4)",
            "x = x + float(x.shape[1])",
            f"x = x * (x.shape[0] // {self._number()} + 1)",
            f"x = x * min(x.shape[1], {self._number()})",
            "x = x * torch.tensor(0.5 * x.shape[1])",
        )
        self._line(depth, self.draw.choice(texts))
