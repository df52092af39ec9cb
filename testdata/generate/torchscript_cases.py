"""TorchScript programs whose branches make lists, dicts or values of other kinds: what follows runs in both, or the method for each case."""
from __future__ import annotations

from typing import Dict, List, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Name: (how, module, options, inputs, other inputs or None).
CASES = {}
ROWS = {"x": "float32[n,3]"}


def script(name, module, inputs, *samples):
    CASES[name] = ("script", module, {"input": inputs, "method": "forward"}, *samples)


def of_sizes(name, module, inputs, *samples):
    """Two cases, so that four sizes are tried."""
    script(name, module, inputs, *samples[:2])
    script(f"{name}_too", module, inputs, *samples[2:])


def rows(*counts, columns=3):
    return [(torch.randn(count, columns),) for count in counts]


class ListsBySize(nn.Module):
    def forward(self, x: Tensor):
        parts = [x]
        if x.size(0) > 3:
            parts.append(x[:2] * 2)
            parts.append(x[1:] + 1)
        return torch.cat(parts), len(parts)


of_sizes("lists_by_size", ListsBySize(), ROWS, *rows(2, 4, 6, 1))


class ListsOfCalls(nn.Module):
    """Lists of a called function, of three lengths, by two sizes."""

    def split(self, x: Tensor) -> List[Tensor]:
        if x.size(0) > x.size(1):
            return [x, x[:1]]
        if x.size(0) == x.size(1):
            return [x]
        return [x[:, :1], x[:, 1:], x]

    def forward(self, x: Tensor):
        out = torch.zeros(1)
        for part in self.split(x):
            out = out + part.sum() * len(part)
        return out, len(self.split(x))


of_sizes("lists_of_calls", ListsOfCalls(), {"x": "float32[n,m]"},
         *((torch.randn(n, m),) for n, m in ((2, 3), (4, 3), (3, 3), (1, 5))))


class DictsBySize(nn.Module):
    def forward(self, x: Tensor):
        named: Dict[str, Tensor] = {"a": x, "b": x + 1}
        if x.size(0) > 3:
            named["b"] = x[:2]
            named["z"] = x * 3
        total = torch.zeros(1)
        for key in named.keys():
            total = total + named[key].sum()
        return total, named["b"]


script("dicts_by_size", DictsBySize(), ROWS, *rows(2, 5))


class NoneBySize(nn.Module):
    def pick(self, x: Tensor) -> Optional[Tensor]:
        if x.size(0) > 4:
            return x[:2]
        return None

    def forward(self, x: Tensor):
        picked = self.pick(x)
        if picked is not None:
            x = x.sum() + picked
        return x


script("none_by_size", NoneBySize(), ROWS, *rows(2, 5))


class Chunks(nn.Module):
    """A chunk gives fewer parts of some sizes."""

    def forward(self, x: Tensor):
        parts = x.chunk(3)
        total = parts[0].sum()
        for part in parts:
            total = total + part.mean()
        return total, len(parts)


of_sizes("fewer_chunks", Chunks(), ROWS, *rows(2, 5, 4, 1))


class ListsByData(nn.Module):
    """Lists of tensors of different sizes, as long as data say."""

    def forward(self, x: Tensor):
        parts = [x]
        if bool(x.sum() > 0):
            parts.append(x[:2] * 2)
        else:
            parts.append(x[:1] * 3)
            parts.append(x - 1)
        keep = torch.nonzero(x[:, 0] > 0)[:, 0]
        if keep.numel() > 0:
            parts.append(x[keep])
        return torch.cat(parts)


of_sizes("lists_by_data", ListsByData(), ROWS, *((sign * torch.rand(n, 3),) for n, sign in ((2, 1), (4, -1), (6, 1), (1, -1))))


class ChosenLists(nn.Module):
    """Lists and dicts that data choose, after a change of one of them, and changed later where nothing reads the others."""

    def forward(self, x: Tensor):
        a, b = [x], [x * 2]
        c, d = {"k": x}, {"k": x * 2}
        if bool(x.sum() > 0):
            a[0] = x + 5
            c["k"] = x + 7
            chosen, named = a, c
        else:
            chosen, named = b, d
        chosen.append(x - 1)
        return chosen[0], chosen[-1], named["k"]


script("chosen_lists", ChosenLists(), ROWS, (torch.rand(2, 3),), (-torch.rand(4, 3),))


class RanksByData(nn.Module):
    """A tensor of one or two dimensions, reduced to a number in the end."""

    def forward(self, x: Tensor):
        y = x * 2
        if bool(x.sum() > 0):
            y = y[0]
        y.add_(1)
        return y.sum(), x


script("ranks_by_data", RanksByData(), ROWS, (torch.rand(2, 3),), (-torch.rand(4, 3),))


LENGTHS = {"x": "float32[b,5,2]", "lengths": "int64[b]"}


def lengths(*rows):
    return [(torch.randn(len(row), 5, 2), torch.tensor(row)) for row in rows]


class RaggedLists(nn.Module):
    """Lists of tensors of different sizes, as many as a dynamic size says."""

    def forward(self, x: Tensor, lengths: Tensor):
        rows: List[Tensor] = []
        columns: List[Tensor] = [x[0].t()]
        for i in range(x.size(0)):
            n = int(lengths[i])
            rows.append(x[i, :n])
            if n > 1:
                columns.append(x[i, n:].t())
        both = rows + [row * 2 for row in rows]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)
        whole = torch.nn.utils.rnn.pad_sequence([(row * 9).long() for row in rows])
        return torch.cat(rows), torch.cat(columns, -1), rows[-1], len(columns), torch.cat(both), padded, whole


script("ragged_lists", RaggedLists(), LENGTHS, *lengths([2, 5, 1], [3, 0, 4, 5]))


class EqualAfterAll(nn.Module):
    """Tensors of a list that turn out to be of one size."""

    def forward(self, x: Tensor, n: Tensor):
        rows: List[Tensor] = []
        for i in range(x.size(0)):
            rows.append(x[i, :, :int(n)])
        return torch.stack(rows, 1)


script("equal_after_all", EqualAfterAll(), {"x": "float32[b,2,5]", "n": "int64[]"}, (torch.randn(3, 2, 5), torch.tensor(2)), (torch.randn(4, 2, 5), torch.tensor(4)))


class Longest(nn.Module):
    """A tensor whose size data decide, carried by a loop that gives it other sizes."""

    def forward(self, x: Tensor, lengths: Tensor):
        best = x[0, :int(lengths[0])]
        for i in range(x.size(0)):
            row = x[i, :int(lengths[i])]
            if row.numel() > best.numel():
                best = row
        return best


script("longest", Longest(), LENGTHS, *lengths([2, 5, 1], [3, 0, 4, 2]))


class SizesOfUnread(nn.Module):
    """Numbers that are computed from the size of a tensor which nothing else reads."""

    def forward(self, x: Tensor):
        found = torch.nonzero(x.flatten() > 0)[:, 0]
        n = int(found.numel() * 0.5)
        return torch.arange(n * 6).view(2, -1, 3), torch.zeros(found.numel() + 1, 2)


script("sizes_of_unread", SizesOfUnread(), ROWS, *rows(4, 7))


class Covariances(nn.Module):
    """Ops that torch.export decomposes and TorchScript does not."""

    def forward(self, x: Tensor):
        weights = x[0].abs()
        found = torch.cov(x, aweights=weights, correction=0), torch.cov(x, fweights=weights.long() + 1)
        z = torch.complex(x, x.flip(1))
        return torch.cov(x), torch.corrcoef(x), found, torch.corrcoef(x[0]), torch.view_as_real(torch.cov(z))


script("covariances", Covariances(), {"x": "float32[3,n]"}, (torch.randn(3, 4),), (torch.randn(3, 9),))


class Vocoder(nn.Module):
    """A spectrum of lengths and angles, and the signal again."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))

    def forward(self, x: Tensor):
        spectrum = torch.stft(x, 16, 4, window=self.window, return_complex=True)
        again = torch.polar(spectrum.abs(), spectrum.angle())
        return torch.istft(again, 16, 4, window=self.window), torch.istft(again, 16, 4, window=self.window, length=50)


script("vocoder", Vocoder(), {"x": "float32[b,n]"}, (torch.randn(1, 64),), (torch.randn(2, 96),))


class Choices(nn.Module):
    """Sizes and types of results that follow from sizes: of choices, of pooled ends, of sums of integers."""

    def forward(self, x: Tensor):
        n = x.long()
        pooled = F.max_pool1d(x.t(), 2, 2, 1, ceil_mode=True), F.max_pool1d(x.t(), 3, 5, 1, ceil_mode=True)
        chosen = torch.combinations(x[:, 0]), torch.combinations(x[:, 1], 3, with_replacement=True)
        return pooled, chosen, torch.einsum("ij,kj->ik", n, n), torch.kron(x[0].half(), x.double().sum())


of_sizes("choices", Choices(), ROWS, *rows(5, 4, 7, 2))


class OfNothing(nn.Module):
    def forward(self, x: Tensor):
        return x.nanmedian(), x.median(), x.long().median(), F.mse_loss(x, x + 1), torch.combinations(x[:, 0], 0)


script("of_nothing", OfNothing(), {"x": "float32[n>=0,3]"}, *rows(4, 0))


class OtherNames(nn.Module):
    """Conversions that have nothing to do return the tensor itself, whose sizes change under all names."""

    def forward(self, x: Tensor):
        a, b, c = x.clone(), x.t().contiguous(), x.clone()
        wide, whole, kept = a.float(), b.contiguous(), c.type_as(x)
        wide.unsqueeze_(0)
        whole.unsqueeze_(1)
        kept.t_()
        copied = c.to(torch.float32, copy=True).unsqueeze_(0)
        return a, b, c, wide, whole, copied


script("other_names", OtherNames(), ROWS, *rows(4, 7))


class OtherNamesToo(nn.Module):
    """So do other operators that have nothing to do; a write into what they return is one into the tensor."""

    def forward(self, x: Tensor):
        a, b, c, d, e, f, g, h = (x.clone(), x.clone(), x.clone(), x.clone(), x.clone(), x.clone(), x.clone(), x.clone())
        plus = torch.positive(a)
        real = torch.conj_physical(b)
        active = F.dropout(c, 0.5, False)
        matrix = torch.atleast_2d(d)
        flat = e.flatten(1, 1)
        sums = f.sum_to_size(x.size())
        same, wider = torch.broadcast_tensors(g, h[0])
        low, high = torch.atleast_2d([h, h[:, 0]])
        for changed in [plus, active, matrix, flat, sums, same, wider, low, high]:
            changed.unsqueeze_(0)
        real.mul_(2)
        row = x[0].clone()
        product = torch.cartesian_prod(row)
        product.add_(1)
        changed = (plus, real, active, matrix, flat, sums, same, wider, low, high, product)
        return (a, b, c, d, e, f, g, h, row), changed


script("other_names_too", OtherNamesToo(), ROWS, *rows(4, 7))


class NarrowProducts(nn.Module):
    """Sums of products of narrow integers keep their type, and wrap."""

    def forward(self, x: Tensor, y: Tensor):
        return torch.einsum("ij,jk->ik", x, y), torch.einsum("bij,bjk->bik", x[None], y[None])


def narrow(rows: int, columns: int):
    return torch.randint(-300, 300, (rows, 3)).short(), torch.randint(-300, 300, (3, columns)).short()


script("narrow_products", NarrowProducts(), {"x": "int16[n,3]", "y": "int16[3,m]"}, narrow(4, 5), narrow(2, 7))


class SqueezedSizes(nn.Module):
    """Computed sizes are taken not to be 1."""

    def forward(self, x: Tensor):
        rows = x.flatten(0, 1).squeeze()
        return rows, rows.sum(-1), x[::2].squeeze(0), torch.linspace(0, 1, x.size(0) + 1).squeeze(0)


script("squeezed_sizes", SqueezedSizes(), {"x": "float32[n,m,3]"}, (torch.randn(4, 2, 3),), (torch.randn(3, 5, 3),))


class OfNothingToo(nn.Module):
    """Types of what has no elements, and of segments."""

    def forward(self, x: Tensor):
        empty = x[:, :0]
        sums = empty.logsumexp(1), x.logsumexp(0), empty.logsumexp([0, 1])
        return sums, torch.linalg.pinv(empty), torch.linalg.matrix_rank(empty)


class Segments(nn.Module):
    def forward(self, x: Tensor):
        lengths = torch.tensor([1, 2])
        return torch.segment_reduce(x[:3], "mean", lengths=lengths), torch.segment_reduce(x[:3, 0], "max", lengths=lengths)


script("of_nothing_too", OfNothingToo(), {"x": "float32[n>=0,3]"}, *rows(4, 0))
script("segments", Segments(), ROWS, *rows(4, 7))
