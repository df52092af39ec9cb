"""Loops and branches over complex tensors."""

from __future__ import annotations


def register(case):
    import torch
    from torch import nn
    from torch.export import Dim

    def z(*sizes):
        return torch.randn(*sizes, dtype=torch.complex64)

    rows = ({0: Dim.DYNAMIC},)

    @case
    def complex_cond():
        class Cond(nn.Module):
            def forward(self, z):
                return torch.cond(z.abs().sum() > 3, lambda z: z * 1j, lambda z: z.conj() + 1, (z,))

        return Cond(), (z(3),), rows, (z(2) * 0.1,)

    @case
    def complex_loop():
        """Steps of the Mandelbrot set."""

        class Steps(nn.Module):
            def forward(self, c):
                def step(i, z, n):
                    inside = z.abs() < 2
                    return i + 1, torch.where(inside, z * z + c, z), n + inside

                start = torch.tensor(0), torch.zeros_like(c), torch.zeros(c.shape, dtype=torch.int64)
                return torch.while_loop(lambda i, z, n: i < 8, step, start)[1:]

        return Steps(), (z(3, 4),), rows, (z(5, 4),)

    @case
    def complex_scan():
        from torch._higher_order_ops import scan

        class Recurrence(nn.Module):
            def forward(self, decay, x):
                def step(state, x):
                    state = state * decay + x
                    return state, state.real * 2

                return scan(step, torch.zeros_like(x[0]), x)

        return Recurrence(), (z(3), z(5, 3)), None, (z(3), z(5, 3))

    @case
    def complex_associative_scan():
        """A linear recurrent unit."""
        from torch._higher_order_ops import associative_scan

        class Unit(nn.Module):
            def forward(self, decay, x):
                def join(a, b):
                    return b[0] * a[0], b[0] * a[1] + b[1]

                pairs = decay.expand_as(x).clone(), x
                return associative_scan(join, pairs, dim=1, combine_mode="generic")[1].real

        return Unit(), (z(4), z(2, 6, 4)), None, (z(4), z(2, 6, 4))

    @case
    def complex_map():
        from torch._higher_order_ops import map as map_rows

        class Rows(nn.Module):
            def forward(self, z):
                return map_rows(lambda row: (row * 1j).cumsum(0), z)

        return Rows(), (z(3, 2),), None, (z(3, 2),)
