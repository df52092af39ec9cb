"""TorchScript programs that have a tensor by several names and write into it, and numbers that constants, float32 and lists hide."""
from __future__ import annotations

import re
from typing import Dict, List, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Name: (how, module, options, inputs, other inputs or None).
CASES = {}
# Programs that are refused, and a part of the message.
REFUSED = {}

X = (torch.arange(12.0).view(3, 4) / 10,)
YES, NO = (*X, torch.tensor([True])), (*X, torch.tensor([False]))
TWO, FOUR = (*X, torch.tensor([2])), (*X, torch.tensor([4]))
DATA = {"x": "float32[n,4]", "c": "bool[1]"}
COUNT = {"x": "float32[3,4]", "n": "int64[1]"}
HELD = "a list whose length depends on data, after a write into a tensor that it holds ("
HOLDS = "a tensor that a list of unknown length holds, after a write into an element of the list ("
CHOSEN = "a tensor, after a write into one that data decide to be the same or another ("


def script(module, inputs, *samples, refused=None):
    """A case with the name of the class: `views_in_place` for ViewsInPlace."""
    name = re.sub("(?<!^)(?=[A-Z])", "_", module.__name__).lower()
    CASES[name] = ("script", module(), {"input": inputs, "method": "forward"}, *samples)
    if refused is not None:
        REFUSED[name] = refused


class WritesThroughAChoice(nn.Module):
    def forward(self, x: Tensor, c: Tensor):
        a, b = x * 1, x * 2
        y = a if bool(c) else b
        y.add_(10)
        return a, b, y


class WritesIntoWhatWasChosen(nn.Module):
    def forward(self, x: Tensor, c: Tensor):
        a = x * 1
        y = a if bool(c) else x * 2
        a[0] = 7.0
        return y


class ReadsOnlyTheChoice(nn.Module):
    """Values that nobody reads again need not be right."""

    def forward(self, x: Tensor, c: Tensor):
        y = x
        if bool(c):
            y = x * 2
        y.add_(10)
        y[0] = 1.0
        return y


class ChoosesAfterWriting(nn.Module):
    def forward(self, x: Tensor, c: Tensor):
        a, b = x * 1, x * 2
        if bool(c):
            a.add_(10)
            if bool(x.sum() > 0):
                v = a
            else:
                v = b
        else:
            b[0] = 3.0
            v = b
        return v, a, b


class WritesAfterNoTrip(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        a = x * 1
        y = a
        for _ in range(int(n)):
            y = y * 2
        y[0] = 9.0
        return a, y


class TwoNamesFromALoop(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        a, b = x * 1, x * 2
        for _ in range(int(n)):
            t = a + b
            a, b = t, t
        a[0] = 9.0
        return a, b


class KeepsWhatItWrites(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        total, before, out = x * 1, x * 2, torch.zeros_like(x)
        for _ in range(int(n)):
            total += 1
            out = out + before
            before = total
        return out


class KeepsWhatItWritesUnread(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        total, last = x * 1, x * 2
        for _ in range(int(n)):
            last = total
            total += 1
        return last, total


class AnElementByData(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        items = [x * 1, x * 2, x * 3, x * 4, x * 5]
        items[int(n)].add_(10)
        return items[2]


class IntoAnyPlace(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        items = [x * 1, x[:2] * 2, x * 3, x * 4, x * 5]
        y = x * 6
        items[int(n)] = y
        y.add_(1)
        return items[2]


class TheSameRowOften(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        rows: List[Tensor] = []
        total = x * 1
        for _ in range(int(n)):
            rows.append(total)
        rows[0].add_(1)
        return torch.stack(rows)


class AnElementAndItsTensor(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        rows: List[Tensor] = []
        last = x * 1
        for i in range(int(n)):
            last = x * i
            rows.append(last)
        rows[0].add_(5)
        return last


class OneRowInTwoLists(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        rows: List[Tensor] = []
        others: List[Tensor] = []
        for i in range(int(n)):
            y = x * i
            rows.append(y)
            others.append(y)
        rows[0].add_(5)
        return torch.stack(others)


class AnElementBeforeTheListGrows(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        rows: List[Tensor] = []
        for i in range(int(n)):
            rows.append(x * i)
        first = rows[0]
        rows.append(x)
        first.add_(7)
        return torch.stack(rows)


class AListTwice(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        rows: List[Tensor] = []
        for i in range(int(n)):
            rows.append(x * i)
        both = rows + rows
        both[0].add_(7)
        return torch.stack(both)


class RowsOfTheirOwn(nn.Module):
    """Each row is a separate tensor, so that writes reach all that they should."""

    def forward(self, x: Tensor, n: Tensor):
        rows: List[Tensor] = []
        for i in range(int(n)):
            row = torch.zeros(4)
            row[0] = x[0, 1] * i
            rows.append(row)
        rows[1][2] = 5.0
        rows[0] += 1
        rows[-1].mul_(2)
        return torch.stack(rows)


for refused in (WritesThroughAChoice, WritesIntoWhatWasChosen):
    script(refused, DATA, YES, NO, refused=CHOSEN)
for passes in (ReadsOnlyTheChoice, ChoosesAfterWriting):
    script(passes, DATA, YES, NO)
for refused in (WritesAfterNoTrip, TwoNamesFromALoop):
    script(refused, COUNT, TWO, FOUR, refused=CHOSEN)
script(KeepsWhatItWrites, COUNT, TWO, FOUR, refused="it writes into a tensor that it keeps in `before")
script(AnElementByData, COUNT, TWO, FOUR, refused=HOLDS)
script(IntoAnyPlace, COUNT, TWO, FOUR, refused=CHOSEN)
for refused in (TheSameRowOften, OneRowInTwoLists, AnElementBeforeTheListGrows, AListTwice):
    script(refused, COUNT, TWO, FOUR, refused=HELD)
script(AnElementAndItsTensor, COUNT, TWO, FOUR, refused=HOLDS)
for passes in (KeepsWhatItWritesUnread, RowsOfTheirOwn):
    script(passes, COUNT, TWO, FOUR)


class ValuesThatBranchesLeave(nn.Module):
    """One branch makes a new tensor, the other writes into the old one: by an attribute, a list, a dict, a tuple and a view."""

    def __init__(self):
        super().__init__()
        self.w = torch.ones(3, 4)

    def forward(self, x: Tensor, c: Tensor):
        self.w = torch.ones(3, 4)
        items, entries, pair = [x * 1, x * 2], {"a": x * 3}, (x * 4, x * 5)
        w, view = x * 6, x[0]
        row = w[0]
        if bool(c):
            self.w = self.w + 1
            items[0] = x + 1
            entries["a"] = x + 2
            pair = (x + 3, x)
            view = x[1] * 2
        else:
            self.w[0] = 5.0
            items[0][0] = 6.0
            entries["a"][0] = 7.0
            pair[0].add_(2)
            w[0] = 8.0
            view = row
        return self.w, items, entries["a"], pair, view, w


class WritesOfABranchThatIsSure(nn.Module):
    """Writes of a branch, where the other one raises, are seen by all names."""

    def forward(self, x: Tensor, c: Tensor):
        a = x * 1
        row, same = x[0], x * 3
        if bool(c.sum() > 5):
            raise ValueError("no")
        else:
            a[0] = 5.0
            same = a
            row = a[1]
        same.add_(1)
        row.mul_(3)
        return a, same, row


for passes in (ValuesThatBranchesLeave, WritesOfABranchThatIsSure):
    script(passes, DATA, YES, NO)


class ViewsInPlace(nn.Module):
    """`y` by all of its names has the sizes that operators in place give it."""

    def forward(self, x: Tensor):
        y = x.clone()
        same = y
        y.unsqueeze_(0).transpose_(1, 2)
        z = same.squeeze_()
        z.add_(1)
        first = y[0]
        y.t_()
        first.zero_()
        return same, y, z, y.size(0)


class ViewsInPlaceByData(nn.Module):
    """In a branch, only tensors made there may change so."""

    def forward(self, x: Tensor, c: Tensor):
        if bool(c):
            y = x.clone()
            y.t_()
            y.add_(1)
        else:
            y = x.t()
        return y


class ViewInPlaceFromOutside(nn.Module):
    def forward(self, x: Tensor, c: Tensor):
        y = x.clone()
        if bool(c):
            y.t_()
        return y.sum(0)


class OutOfTheSameSize(nn.Module):
    """`out=` writes into the tensor, which a view shows; one of another size becomes the result."""

    def forward(self, x: Tensor, c: Tensor):
        buffer, other = torch.zeros_like(x), torch.empty(0)
        row = buffer[0]
        torch.add(x, 1, out=buffer)
        torch.mul(x, x, out=other)
        if bool(c):
            torch.mul(buffer, 2, out=buffer)
        return buffer, row, other


ROWS = {"x": "float32[n,4]"}
MORE = (torch.arange(20.0).view(5, 4) / 10,)
script(ViewsInPlace, ROWS, X, MORE)
script(ViewsInPlaceByData, DATA, YES, NO)
script(ViewInPlaceFromOutside, DATA, YES, NO, refused="changing the sizes of a tensor in place where data decide")
script(OutOfTheSameSize, DATA, YES, (*MORE, torch.tensor([False])))


class ConstantsOfATrace(nn.Module):
    """The number 1.5 is a tensor of float64 in a trace, and counts as a number there."""

    def forward(self, x, i):
        return i * 1.5, i / 2, 1.5 + i, i - 0.5, x.sum() * 1.5, x.half().sum() / 3.0, i.to(torch.int8).max() * 2, i // 2


numbers = torch.arange(6).view(2, 3)
CASES["constants_of_a_trace"] = ("trace", ConstantsOfATrace(), {"input": {"x": "float32[n,4]", "i": "int64[k,3]"}}, (*X, numbers), (*MORE, numbers + 1))


class SizesThroughFloat32(nn.Module):
    """10 * 1.3 is 13 in float32, and less than 13 times the number that 1.3 is there."""

    def forward(self, x):
        return F.interpolate(x, scale_factor=1.3, mode="nearest", recompute_scale_factor=True)


CASES["sizes_through_float32"] = ("trace", SizesThroughFloat32(), {"input": {"x": "float32[1,2,h,w]"}}, (torch.randn(1, 2, 10, 8),), (torch.randn(1, 2, 20, 30),))


class NumbersOfUnknownSize(nn.Module):
    """Sizes in lists: looked for, sorted, compared, and in tensors of several dimensions."""

    def forward(self, x: Tensor):
        sizes = [x.size(0), 4, 1]
        y = x
        if 5 in sizes:
            y = y + 1
        if x.size(0) not in [2, 7, 9]:
            y = y * 2
        if [x.size(0), 1] == [3, 1]:
            y = y - 0.5
        sizes.sort(reverse=True)
        quotient, rest = divmod(x.size(0) + 4, 3)
        names: Dict[str, int] = {"rows": quotient}
        if "row" in "some rows" and "rows" in names:
            y = y * 3
        return y, x.new_zeros(sizes), torch.tensor([[x.size(0)], [rest]]), names["rows"], sizes[1]


class KeysOfUnknownSize(nn.Module):
    def forward(self, x: Tensor):
        found: Dict[int, Tensor] = {3: x, 5: x + 1}
        if x.size(0) in found:
            x = x * 2
        return x


class ResizedByAFraction(nn.Module):
    def forward(self, x: Tensor):
        return F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=False)


class InnerProducts(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        return torch.inner(x, x), torch.inner(x[None], x[0])


script(NumbersOfUnknownSize, ROWS, X, MORE)
script(KeysOfUnknownSize, ROWS, X, MORE, refused="looking for a number of unknown size is not supported")
script(ResizedByAFraction, {"x": "float32[1,2,h,w]"}, (torch.randn(1, 2, 5, 8),), (torch.randn(1, 2, 11, 3),))
script(InnerProducts, ROWS, X, MORE)


class ChosenAndChanged(nn.Module):
    def forward(self, x: Tensor):
        a, b = [x], [x * 2]
        if bool(x.sum() > 0):
            chosen = a
        else:
            chosen = b
        a[0] = x - 1
        return chosen[0]


script(ChosenAndChanged, ROWS, X, refused="a list or dict that a condition or loop on data chose, and that is changed by another name, is not supported")


class ReturnsNothing(nn.Module):
    def forward(self, x: Tensor) -> List[int]:
        rows: List[int] = []
        return rows


script(ReturnsNothing, ROWS, X, refused="a method that returns no tensor is not supported")


class OrdersInMemory(nn.Module):
    """Whether `reshape` and `contiguous` are copies follows from how each operator stores its result."""

    def forward(self, x: Tensor):
        turned = x.transpose(1, 2) + 1
        a = turned.reshape(-1).mul_(2)
        moved = x.movedim(0, -1) * x[0, 0, 0]
        b = moved.contiguous().add_(1)
        shares = x.mT.softmax(-1)
        c = shares.reshape(-1).zero_()
        column = (x.transpose(1, 2)[:, :1].squeeze(1) + 0).cos()
        d = column.contiguous().neg_()
        diagonal = (x + 0).diagonal(0, 1, 2)
        e = diagonal.contiguous().exp_()
        windows = (x + 0).mT.unfold(1, 2, 2)
        f = windows.contiguous().sub_(3)
        parts = (x + 0).swapdims(1, 2).unflatten(1, (2, 2))
        g = parts.reshape(-1).fill_(7)
        halves = x.mT.to(torch.float64)
        h = halves.flatten(1).mul_(0)
        return (turned, moved, shares, column, diagonal, windows, parts, halves), (a, b, c, d, e, f, g, h)


script(OrdersInMemory, {"x": "float32[n,3,4]"}, (torch.randn(2, 3, 4),), (torch.randn(5, 3, 4),))


class OrdersOfViews(nn.Module):
    """`view` of what is not in order, and the parts of complex numbers, have strides too."""

    def forward(self, x: Tensor):
        split = (x + 0).transpose(0, 1).view(3, -1, 2, 2)
        a = split.reshape(-1).add_(1)
        joined = (x + 0).permute(2, 0, 1).flatten(1)
        b = joined.contiguous().mul_(2)
        numbers = torch.view_as_complex((x + 0).view(-1, 3, 2, 2)).transpose(0, 1)
        c = torch.real(numbers).contiguous().zero_()
        d = torch.view_as_real(numbers).flatten(2).mul_(3)
        as_itself = torch.real(x + 0)
        as_itself.unsqueeze_(0)
        return (split, joined, torch.view_as_real(numbers), as_itself), (a, b, c, d)


script(OrdersOfViews, {"x": "float32[n,3,4]"}, (torch.randn(2, 3, 4),), (torch.randn(5, 3, 4),))


class AsksForItsOrder(nn.Module):
    """`is_contiguous` is what strides and sizes say, in each memory format."""

    def turned(self, x: Tensor):
        y = x[0, 0].t()
        return y * 2 if y.is_contiguous() else y * 3

    def forward(self, x: Tensor):
        y, z = x.permute(0, 2, 3, 1), x.contiguous(memory_format=torch.channels_last)
        plain = [x.is_contiguous(), y.is_contiguous(), z.is_contiguous(), x[0].is_contiguous(), x[:, :1].is_contiguous(), x.unsqueeze(0).expand(2, -1, -1, -1, -1).is_contiguous()]
        last = [t.is_contiguous(memory_format=torch.channels_last) for t in [x, y, z, z.clone(), z.contiguous(), z[0]]]
        rows = x[0, :, 0] + 0
        part = rows[:, 1:]
        if not part.is_contiguous():
            part = part.contiguous()
        part.add_(1)
        return self.turned(x), torch.tensor(plain), torch.tensor(last), z.stride(1), part


ORDERED = {"x": "float32[n,3,h,w]"}
script(AsksForItsOrder, ORDERED, (torch.rand(2, 3, 4, 5),), (torch.rand(1, 3, 1, 2),))


class ReadsBeforeTheNextTrip(nn.Module):
    """A trip writes into what data chose, and the next one reads what it was chosen from."""

    def forward(self, x: Tensor, n: Tensor):
        a, b, total = x * 1, x * 2, x * 0
        y = a if bool(n > 3) else b
        for t in range(int(n)):
            total = total + a
            y.add_(1)
        return total


class ChoosesInEachTrip(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        a, b, total = x * 1, x * 2, x * 0
        for t in range(int(n)):
            total = total + a - b
            y = a if bool(x[0, 1] > t) else b
            y.add_(1)
        return total


class AnElementInEachTrip(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        rows, total = [x[0] * 1, x[0] * 2], x[0] * 0
        for t in range(int(n)):
            y = rows[int(x[0, 1] > t)]
            total = total + rows[0] - rows[1]
            y += 1
        return total


script(ReadsBeforeTheNextTrip, COUNT, TWO, FOUR, refused=CHOSEN)
script(ChoosesInEachTrip, COUNT, TWO, FOUR, refused=CHOSEN)
script(AnElementInEachTrip, COUNT, TWO, FOUR, refused=HOLDS)


class ChoosesNewTensors(nn.Module):
    """A trip writes into what it has made itself."""

    def forward(self, x: Tensor, n: Tensor):
        a, b, total = x * 1, x * 2, x * 0
        z = a if bool(n > 3) else b
        for t in range(int(n)):
            y = x + a if bool(x[0, 1] > t) else x - b
            y.add_(1)
            y[0] = 2
            total = total + y
        for t in range(int(n)):
            total = total + x
            z.add_(1)
        return total, z


script(ChoosesNewTensors, COUNT, TWO, FOUR)
