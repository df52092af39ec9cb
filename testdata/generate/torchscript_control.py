"""TorchScript programs whose course, sizes and memory data decide: early returns, optional values, copies that are none."""
from __future__ import annotations

import math
from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn

# Name: (how, module, options, inputs, other inputs or None).
CASES = {}


def script(name, module, inputs, *samples):
    CASES[name] = ("script", module, {"input": inputs, "method": "forward"}, *samples)


def trace(name, module, inputs, *samples):
    CASES[name] = ("trace", module, {"input": inputs}, *samples)


class EarlyReturns(nn.Module):
    """Loops and branches that end early: their results are uninitialised on the other ways."""

    def find(self, x: Tensor) -> Tuple[Tensor, int]:
        for i in range(x.size(0)):
            if bool(x[i].sum() > 1):
                return x[i], i
        return x[0] * 0, -1

    def total(self, x: Tensor) -> Tuple[Tensor, int]:
        total = torch.zeros(3)
        count = 0
        for i in range(x.size(0)):
            if i == 1:
                continue
            if bool(x[i].sum() < -2):
                break
            total += x[i]
            count += 1
        return total, count

    def forward(self, x: Tensor, k: int):
        row, at = self.find(x)
        total, count = self.total(x)
        halves = 0
        y = x
        while True:
            y = y * 0.5
            halves += 1
            if bool(y.abs().max() < 0.2):
                break
            if halves > 10:
                break
        if k > 2:
            if bool(x.sum() > 0):
                x = x + 1
            elif k == 4:
                x = x - 1
            else:
                return x * 100, at, row, total, count, y, halves
        return x, at, row, total, count, y, halves


script("returns_in_loops", EarlyReturns(), {"x": "float32[n,3]", "k": "int64[]"},
       (torch.rand(4, 3), 3), (-torch.rand(6, 3), 3))
script("breaks_in_loops", EarlyReturns(), {"x": "float32[n,3]", "k": "int64[]"},
       (torch.tensor([[0.0, 0, 0], [3, 4, 5], [-9, 0, 0]]), 4), (torch.tensor([[0.1, 0, 0], [-3, 0, 1]]), 2))


class Optionals(nn.Module):
    """Values that are None or not, as data say, and tuples that loops carry."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)

    def forward(self, x: Tensor, flag: bool):
        scale: Optional[Tensor] = None
        power: Optional[int] = None
        if flag:
            scale = x.sum(0)
            power = 3
        y = x
        if scale is not None:
            y = y * scale
        if power is not None:
            y = y + power
        best: Optional[Tensor] = None
        for i in range(x.size(0)):
            if best is None:
                best = x[i]
            elif bool(x[i].sum() > best.sum()):
                best = x[i]
        assert best is not None
        state = (torch.zeros(1, 4), torch.zeros(1, 4))
        seen = torch.jit.annotate(List[Tensor], [])
        for i in range(x.size(0)):
            state = self.cell(x[i].unsqueeze(0), state)
            seen += [state[0]]
        odd = torch.zeros(3)
        for i in range(1, x.size(0), 2):
            odd = odd + x[i]
        for i in range(x.size(0) - 1, -1, -1):
            odd = odd * 0.5 + x[i]
        made = {"a": x, "b": y}
        if flag:
            made = {"a": y, "b": x * 2}
        return y, best, state, torch.cat(seen), odd, made


script("optional_values_of_data", Optionals(), {"x": "float32[n,3]", "flag": "bool[]"}, (torch.randn(4, 3), True), (torch.randn(7, 3), False))


class Copies(nn.Module):
    """Operators that copy only if they have to, written into."""

    def forward(self, x: Tensor, y: Tensor):
        x, y = x * 1, y * 1
        rows = x[1:].contiguous()
        rows.mul_(2)
        same = y.to(torch.float32).type_as(x)
        same.add_(1)
        turned = y.t().contiguous()
        turned.mul_(3)
        columns = x[:, :2].contiguous()
        columns.zero_()
        flat = (x + y).reshape(-1)
        again = flat.view(3, -1)
        again[0] = 5
        whole = y.clone()
        whole.flatten()[0] = 7
        view = whole[:, 0]
        for i in range(x.size(0)):
            view.add_(i)
            whole[i] *= 2
        if bool(x.sum() > 0):
            view.mul_(3)
        return x, y, rows, same, turned, columns, flat, again, whole, view, x + int(x.t().is_contiguous())


COPIES = {"x": "float32[4,3]", "y": "float32[4,3]"}
script("copies_that_are_none", Copies(), COPIES, (torch.rand(4, 3), torch.randn(4, 3)), (-torch.rand(4, 3), torch.randn(4, 3)))
trace("traced_copies", Copies(), {}, (torch.rand(4, 3), torch.randn(4, 3)))


class Numbers(nn.Module):
    """Arithmetic of Python on numbers that are inputs, and on known ones."""

    def forward(self, x: Tensor, a: int, b: int, c: float, d: float):
        numbers = [0, 1, 2, 3, 4, 5]
        whole = torch.tensor([a // b, a % b, -a // b, -a % b, a // -b])
        real = torch.tensor([a**2, a / b, float(a) // b, c // d, c % d, math.fmod(c, d), math.atan2(c, d), math.log10(abs(c) + 1), (-7) ** 2, 7.5 // -2])
        return whole, real, x * (a // b), torch.tensor(numbers[::-1]), torch.tensor(numbers[-2:0:-2]), "abc"[::-1] == "cba"


NUMBERS = {"x": "float32[n]", "a": "int64[]", "b": "int64[]", "c": "float32[]", "d": "float32[]"}
script("numbers_of_python", Numbers(), NUMBERS, (torch.randn(2), -7, 3, 7.5, -2.0), (torch.randn(3), 8, -3, -7.25, 2.5))


class SizesDecide(nn.Module):
    """Conditions that no size decides in general: whether one is even, which of two is larger."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor, y: Tensor):
        n = x.size(0)
        if n % 2 == 0:
            half = x[: n // 2]
        else:
            half = x[: n // 2 + 1]
        if x.size(0) > y.size(0):
            rows = x.size(0)
        else:
            rows = y.size(0)
        self.mean = x[0] * 0
        self.count.zero_()
        for i in range(n):
            self.mean = 0.5 * self.mean + x[i]
            self.count += 1
        return half * 2, half.size(0), torch.zeros(rows), self.mean, self.count, n & 3, n | 8, torch.allclose(x, x + 0), torch.equal(x, x)


script("sizes_decide_in_general", SizesDecide(), {"x": "float32[n,3]", "y": "float32[m,3]"},
       (torch.randn(4, 3), torch.randn(5, 3)), (torch.randn(7, 3), torch.randn(2, 3)))


class SpecialSizes(nn.Module):
    """Conditions that hold for most sizes, between tensors of other sizes and other numbers."""

    def forward(self, x: Tensor):
        n = x.size(0)
        few = x[:2] if n > 3 else x
        if n != 4 and n > 2:
            x = x + 1
        factor = max(n, 3) if n != 3 else 7
        if x.size(0) < x.size(1):
            shape = [n, 4]
        else:
            shape = [1, 2]
        return few, x * factor, x.new_ones(shape), n > 2 and x.dim() == 2


SPECIAL = (torch.randn(4, 5),), (torch.randn(3, 5),)
script("special_sizes", SpecialSizes(), {"x": "float32[n,5]"}, *SPECIAL)
script("special_sizes_of_many", SpecialSizes(), {"x": "float32[n,5]"}, (torch.randn(6, 5),), (torch.randn(2, 5),))


class SqueezedOnes(nn.Module):
    """Dimensions that are taken out only where their size is 1."""

    def first(self, x: Tensor):
        if x.size(0) == 1:
            return x.squeeze(0)
        for i in range(3):
            x = x * 1.5
            if bool(x.sum() > 9):
                return x[0] - i
        return x.mean(0)

    def several(self, x: Tensor):
        if x.size(0) == 1 and x.size(1) == 1:
            return x.squeeze(), x.unsqueeze(1).squeeze([0, 1, 2])
        return x.sum((0, 1)), x.amax((0, 1))

    def written(self, x: Tensor):
        x = x.clone()
        if x.size(0) < 2:
            row = x.squeeze(0)
            row[0] += 1
        else:
            row = x[1]
        copied = x[:1].clone()
        if x.size(1) == 1:
            copied.squeeze_(1)
        else:
            copied = copied.sum(1)
        return x, row, copied

    def forward(self, x: Tensor, y: Tensor):
        return self.first(x[:, 0]), self.several(x), self.written(x), self.several(y), self.written(y)


ONES = {"x": "float32[n,m,3]", "y": "float32[m,m,3]"}
script("squeezed_ones", SqueezedOnes(), ONES, (torch.randn(2, 1, 3), torch.randn(1, 1, 3)), (torch.randn(1, 4, 3), torch.randn(4, 4, 3)))
