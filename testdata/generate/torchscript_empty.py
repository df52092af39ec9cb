"""TorchScript programs at a size of 0: writes by index, slices with computed bounds, quotients of promoted types."""
from __future__ import annotations

import re

import torch
from torch import Tensor, nn

# Name: (how, module, options, inputs, other inputs or None).
CASES = {}

X = {"x": "float32[n>=0,3]"}
FOUR, NONE = (torch.arange(12.0).view(4, 3) / 4 - 1,), (torch.zeros(0, 3),)


def script(module):
    """A case with the name of the class, at 4 rows and at none."""
    name = re.sub("(?<!^)(?=[A-Z])", "_", module.__name__).lower()
    CASES[name] = ("script", module(), {"input": X, "method": "forward"}, FOUR, NONE)


class IndexPutOfNoRows(nn.Module):
    def forward(self, x: Tensor):
        rows = torch.arange(x.shape[0])
        columns, masked, both = x.clone(), x.clone(), x.clone()
        columns[:, torch.tensor([0, 1])] = 5.0
        masked[x > 0] = 2.0
        both[rows, rows % 3] = x[:, 0]
        chosen = x.clone()
        chosen[x[:, 0] > 0] = x[x[:, 0] > 0] * 2
        found = x.clone()
        found[torch.nonzero(x[:, 0] > 0).squeeze(1), 1] = 7.0
        one_hot = torch.zeros(x.shape[0], 4, dtype=torch.long)
        one_hot[rows, torch.zeros_like(rows)] = 1
        added = x.clone().index_put([rows], torch.tensor(3.0), accumulate=True)
        return columns, masked, both, chosen, found, one_hot, added


class IndexedWritesOfNoRows(nn.Module):
    def forward(self, x: Tensor):
        rows = torch.arange(x.shape[0])
        places = (x > 0).long()
        written = (x.index_fill(0, rows, 4.0), x.index_copy(0, rows, x * 2), x.index_add(0, rows, x * 2), x.clone().put_(rows, x[:, 0]))
        scattered = (x.scatter(1, places, 3.0), x.scatter_add(1, places, x), x.scatter_reduce(0, torch.zeros_like(places), x, "amax"))
        read = (x.gather(0, places[:0]), x.take(rows), x[rows], x.masked_fill(x > 0, 1.0).masked_scatter(x > 0, x * 2))
        return written, scattered, read


class LoopsOverNoRows(nn.Module):
    def forward(self, x: Tensor):
        y = x.clone()
        for i in range(x.shape[0]):
            y[i] = x[i] * i
            y[i, 0] += x[i, 1]
            y[:, 1][i] = 3.0
        return y


class SlicesWithComputedBounds(nn.Module):
    def forward(self, x: Tensor):
        n, columns = x.shape[0], x.shape[1]
        halves = torch.ones(n, 3)
        halves[n // 2 :] = 0.0
        halves[: n // 2, 0] = x[: n // 2, 0]
        part = torch.zeros(n, 5)
        part[:, 1:3] = x[:, :2]
        return halves, part, x[: n - 1], x[n // 2 :, : columns // 2], x[1:n:2]


class QuotientsArePromoted(nn.Module):
    def forward(self, x: Tensor):
        count, y = x.shape[0], x.long()
        wide = y.div(torch.tensor(2.0, dtype=torch.float64)), torch.div(y, x.double())
        half = x.half()
        return y / count, y / 2, torch.div(y, 2.5), y / y, torch.tensor(count) / 3, wide, half / 3, half / torch.tensor(3.0), x.int() / half, (x > 0) / 2


for program in (IndexPutOfNoRows, IndexedWritesOfNoRows, LoopsOverNoRows, SlicesWithComputedBounds, QuotientsArePromoted):
    script(program)
