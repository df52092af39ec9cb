"""Programs of modules that are called several times, for functions of modules (`--module-functions`). Registered with `make.case` on import."""
from __future__ import annotations


def register(case):
    import torch
    from torch import nn
    from torch.export import Dim

    class Attention(nn.Module):
        def __init__(self, size, heads):
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(size, size) for _ in range(4))
            self.heads = heads

        def forward(self, x, mask):
            batch, length, size = x.shape
            split = lambda t: t.view(batch, length, self.heads, -1).transpose(1, 2)
            q, k, v = (split(f(x)) for f in (self.query, self.key, self.value))
            weights = (q @ k.transpose(-1, -2)) / (size // self.heads) ** 0.5
            weights = weights.masked_fill(mask.unsqueeze(1), -1e9).softmax(-1)
            return self.out((weights @ v).transpose(1, 2).reshape(batch, length, size))

    class Feed(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.up, self.act, self.down = nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size)
            self.dropout = nn.Dropout(0.1)

        def forward(self, x):
            return self.dropout(self.down(self.act(self.up(x))))

    class Block(nn.Module):
        def __init__(self, size, heads):
            super().__init__()
            self.attention, self.feed = Attention(size, heads), Feed(size)
            self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)

        def forward(self, x, mask):
            x = x + self.attention(self.norm1(x), mask)
            return x + self.feed(self.norm2(x))

    @case
    def module_blocks():
        """A block that is used three times with other weights, at any batch and length; the mask is shared."""

        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(20, 16)
                self.blocks = nn.ModuleList(Block(16, 4) for _ in range(3))
                self.norm = nn.LayerNorm(16, eps=1e-6)

            def forward(self, ids):
                mask = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
                x = self.embed(ids)
                for block in self.blocks:
                    x = block(x, mask[None])
                return self.norm(x)

        ids = lambda b, n: (torch.arange(b * n).view(b, n) % 20,)
        return Encoder(), ids(2, 5), ({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},), ids(3, 7)

    @case
    def module_nested():
        """Modules of one class within each other, and at different depths."""

        class Tree(nn.Module):
            def __init__(self, depth):
                super().__init__()
                self.fc = nn.Linear(6, 6)
                self.children_ = nn.ModuleList(Tree(depth - 1) for _ in range(2 if depth else 0))

            def forward(self, x):
                y = torch.tanh(self.fc(x))
                for child in self.children_:
                    y = y + child(y)
                return y

        tower = nn.Sequential(Tree(2), nn.Sequential(nn.Sequential(nn.Linear(6, 6), nn.ReLU()), Tree(1)), nn.Linear(6, 3))
        return tower, (torch.rand(2, 6),), ({0: Dim.DYNAMIC},), (torch.rand(5, 6),)

    @case
    def module_tied():
        """A module that is called three times with its own results, and a weight that two modules share."""

        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.cell, self.head = nn.Embedding(8, 4), nn.GRUCell(4, 4), nn.Linear(4, 8, bias=False)
                self.mix = nn.Bilinear(4, 4, 4)
                self.head.weight = self.embed.weight

            def forward(self, ids, h):
                x = self.embed(ids)
                for _ in range(3):
                    h = self.mix(self.cell(x, h), x)
                return self.head(h), self.embed(ids + 1)

        return Tied(), (torch.tensor([1, 3]), torch.rand(2, 4)), None, None

    @case
    def module_control():
        """Control flow in modules, and modules in control flow."""

        class Gate(nn.Module):
            def __init__(self, scale):
                super().__init__()
                self.fc1, self.fc2, self.scale = nn.Linear(4, 4), nn.Linear(4, 4), scale

            def forward(self, x):
                bias = x.mean()
                on = lambda x, b: self.fc1(x) * self.scale + b
                off = lambda x, b: self.fc2(torch.relu(self.fc2(x))) - b
                return torch.cond(x.sum() > 0, on, off, (x, bias))

        class Repeat(nn.Module):
            def forward(self, x):
                step = lambda i, x: (i + 1, x * 0.5 + 1)
                return torch.while_loop(lambda i, x: i < 3, step, (torch.tensor(0), x))[1]

        class Control(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second, self.repeat = Gate(2.0), Gate(3.0), Repeat()

            def forward(self, x):
                return self.repeat(self.second(-self.first(x)))

        return Control(), (torch.rand(3, 4),), ({0: Dim.DYNAMIC},), (-torch.rand(5, 4),)

    @case
    def module_attributes():
        """Modules of one class whose attributes and constants differ."""

        class Scale(nn.Module):
            def __init__(self, factor, axis, shape):
                super().__init__()
                self.factor, self.axis, self.shape = factor, axis, shape

            def forward(self, x):
                return (x * self.factor).softmax(self.axis).reshape(self.shape) + self.factor

        class Stages(nn.Module):
            def __init__(self):
                super().__init__()
                sizes = ((3, 4, 3, 1, 1), (4, 4, 5, 2, 2), (4, 6, 1, 1, 0))
                self.convs = nn.ModuleList(nn.Conv2d(i, o, k, s, p) for i, o, k, s, p in sizes)
                self.acts = nn.ModuleList(nn.LeakyReLU(a) for a in (0.1, 0.2, 0.2))
                self.pools = nn.ModuleList((nn.MaxPool2d(2), nn.MaxPool2d(3, 1)))
                self.scales = nn.ModuleList((Scale(0.5, 1, (1, -1)), Scale(2.0, -1, (2, -1)), Scale(4.0, -1, (3, 2, -1))))

            def forward(self, x):
                for conv, act in zip(self.convs, self.acts):
                    x = act(conv(x))
                x = self.pools[1](self.pools[0](x))
                return [scale(x) for scale in self.scales]

        return Stages(), (torch.rand(1, 3, 20, 20),), None, None

    @case
    def module_results():
        """Modules with several results: inputs, unused ones, some used in another module as well."""

        class Split(nn.Module):
            def forward(self, x, y):
                low, high = x.chunk(2, -1)
                return low.exp(), y, high.sum(-1, keepdim=True), {"both": x + y, "none": x - y}

        class Parts(nn.Module):
            def __init__(self):
                super().__init__()
                self.split, self.other, self.same, self.fc = Split(), Split(), nn.Identity(), nn.Linear(4, 8)

            def forward(self, x):
                low, y, total, named = self.split(x, x * 2)
                a, b, c, d = self.other(self.fc(low), self.same(named["both"]))
                return a, self.same(y), total + c, self.same(x), d["none"], x.to(torch.float64) + b

        return Parts(), (torch.rand(2, 8),), ({0: Dim.DYNAMIC},), (torch.rand(4, 8),)

    @case
    def module_types():
        """Modules of one class at different element types and ranks: one function for all."""

        class Norm(nn.Module):
            def __init__(self, dtype):
                super().__init__()
                self.weight = nn.Parameter(torch.rand(4, dtype=dtype))

            def forward(self, x):
                return x * (x.square().mean(-1, keepdim=True) + 1).rsqrt() * self.weight

        class Types(nn.Module):
            def __init__(self):
                super().__init__()
                self.wide, self.narrow, self.square = Norm(torch.float64), Norm(torch.float32), Norm(torch.float32)

            def forward(self, x):
                return self.wide(x.double()), self.narrow(x), self.square(x[None].expand(2, -1, -1))

        return Types(), (torch.rand(3, 4),), ({0: Dim.DYNAMIC},), (torch.rand(2, 4),)
