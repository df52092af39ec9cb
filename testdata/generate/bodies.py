"""Writes into operands in the bodies of branches, loops and maps. PyTorch exports them without gradients only."""

from __future__ import annotations


def register(case):
    import torch
    from torch import nn
    from torch._higher_order_ops import map as map_slices
    from torch._higher_order_ops import scan

    x = lambda *sizes: torch.arange(float(torch.Size(sizes).numel())).reshape(sizes) - 2.0
    yes, no = torch.tensor(True), torch.tensor(False)

    def writing(module):
        module.no_grad = True
        return module

    def branches(write, keep, look=lambda *tensors: tensors):
        """Branches over a new tensor: `write` if the condition is true, else `keep`."""

        class Branches(nn.Module):
            def forward(self, p, x):
                y = x + 1
                return torch.cond(p, write, keep, (y,)), *look(y)

        return writing(Branches())

    @case
    def write_in_branch():
        def write(y):
            y.add_(1)
            return y.sum()

        return branches(write, torch.sum), (yes, x(3)), None, (no, x(3))

    @case
    def write_in_both_branches():
        def write(y):
            y[1].zero_()
            return y.sum()

        def keep(y):
            y.mul_(3)
            return y.sum()

        return branches(write, keep), (yes, x(2, 3)), None, (no, x(2, 3))

    @case
    def write_to_view_in_branch():
        """The operand is a row; its base and another view of it are read afterwards."""

        class Row(nn.Module):
            def forward(self, p, x):
                y = x * 2
                row, column = y[1], y[:, 0]

                def write(row):
                    row.add_(10)
                    return row.sum()

                return torch.cond(p, write, torch.sum, (row,)), y, row, column

        return writing(Row()), (yes, x(2, 3)), None, (no, x(2, 3))

    @case
    def operands_that_share_memory():
        class Shared(nn.Module):
            def forward(self, p, x):
                y = x * 2
                row = y[1]

                def first(y, row):
                    row.zero_()
                    return y.sum()

                def second(y, row):
                    y.add_(5)
                    return row.sum()

                return torch.cond(p, first, second, (y, row)), y, row

        return writing(Shared()), (yes, x(2, 3)), None, (no, x(2, 3))

    @case
    def views_of_one_base():
        class Views(nn.Module):
            def forward(self, p, x):
                y = x * 2
                columns, element = y[:, 1:], y[1, 2]

                def first(columns, element):
                    columns.mul_(3)
                    return element + 1

                def second(columns, element):
                    element.zero_()
                    return columns.sum()

                return torch.cond(p, first, second, (columns, element)), y, columns, element

        return writing(Views()), (yes, x(2, 3)), None, (no, x(2, 3))

    @case
    def write_in_nested_branches():
        class Nested(nn.Module):
            def forward(self, p, q, x):
                y = x * 2

                def inner(y):
                    y[0].sub_(7)
                    return y.sum()

                def outer(q, y):
                    y.add_(1)
                    return torch.cond(q, inner, torch.sum, (y,)) + y[0].sum()

                return torch.cond(p, outer, lambda q, y: y.sum(), (q, y)), y

        return writing(Nested()), (yes, yes, x(2, 3)), None, (yes, no, x(2, 3))

    @case
    def write_to_buffer_in_branch():
        class Counter(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("steps", torch.zeros(2))

            def forward(self, p, x):
                def count(x):
                    self.steps[1].add_(1)
                    return x * self.steps

                return torch.cond(p, count, lambda x: x * 2, (x,)), self.steps + 1

        return writing(Counter()), (yes, x(3, 2)), None, (no, x(3, 2))

    @case
    def write_in_loop():
        """Zero iterations leave what was there."""

        class Loop(nn.Module):
            def forward(self, n, x):
                seen = torch.full((4,), -1.0)
                total = x * 1

                def step(i):
                    total.add_(i)
                    seen[1:].mul_(2).sub_(total.sum())
                    return (i + 1,)

                return *torch.while_loop(lambda i: i < 3, step, (n,)), seen, total

        return writing(Loop()), (torch.tensor(0), x(3)), None, (torch.tensor(3), x(3))

    @case
    def write_in_loop_in_branch():
        class Steps(nn.Module):
            def forward(self, p, n, x):
                y = x * 2

                def steps(n, y):
                    def step(i):
                        y[0].add_(i)
                        return (i + 1,)

                    return torch.while_loop(lambda i: i < 3, step, (n,))[0] + y.sum()

                return torch.cond(p, steps, lambda n, y: n * y.sum(), (n, y)), y

        return writing(Steps()), (yes, torch.tensor(1), x(2, 3)), None, (no, torch.tensor(1), x(2, 3))

    @case
    def write_in_scan():
        class Cache(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("cache", torch.zeros(4, 3))

            def forward(self, x):
                largest = x[0] * 1

                def step(at, row):
                    self.cache[1].add_(row * at)
                    largest.copy_(torch.maximum(largest, row))
                    return at + 1, row + largest

                at, rows = scan(step, torch.tensor(0), x)
                return at, rows, largest, self.cache * 1

        return writing(Cache()), (x(4, 3),), None, (-x(4, 3),)

    @case
    def write_in_map():
        class Map(nn.Module):
            def forward(self, x, w):
                y = x * 2

                def row(y, w):
                    y.add_(w)
                    return (y * w).sum()

                return map_slices(row, y, w), y

        return writing(Map()), (x(4, 3), x(3)), None, (x(4, 3) * 2, x(3))

    @case
    def write_in_vmap():
        class Map(nn.Module):
            def forward(self, x):
                y = x * 2

                def column(y):
                    y.clamp_(max=3)
                    return y * y.sum()

                return torch.vmap(column, in_dims=1)(y), y

        return writing(Map()), (x(4, 3),), None, (x(4, 3) * 2,)

    @case
    def result_is_an_operand():
        """Both branches return their operand itself: a write to the result is one to the operand."""

        class Same(nn.Module):
            def forward(self, p, x):
                y = x * 2

                def write(y):
                    y.add_(1)
                    return y

                z = torch.cond(p, write, lambda y: y, (y,))
                z.mul_(10)
                return y, z

        return writing(Same()), (yes, x(3)), None, (no, x(3))

    @case
    def result_may_be_an_operand():
        """One of two operands is returned and written into; neither is read again."""

        class Either(nn.Module):
            def forward(self, p, x):
                a, b = x * 2, x + 5
                c = torch.cond(p, lambda a, b: a, lambda a, b: b, (a, b))
                c.add_(1)
                return c

        return writing(Either()), (yes, x(3)), None, (no, x(3))
