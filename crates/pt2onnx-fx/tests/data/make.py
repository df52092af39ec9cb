"""Writes the archives of this folder and, beside each, what PyTorch prints of it: NAME.pt2 and NAME.torch.txt.

Made with torch 2.15.0:  python make.py [NAME...], all of them without names
"""

import logging
import os
import sys
import warnings

import torch
from torch import nn
from torch.export import Dim, export, save
from torch.export.pt2_archive._package import package_pt2

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
torch.manual_seed(0)
HERE = os.path.dirname(os.path.abspath(__file__))
CASES = {}


def case(*args, **options):
    def register(cls):
        CASES[cls.__name__] = (cls, args, options)
        return cls

    return register


@case(torch.ones(2, 3))
class weights(nn.Module):
    """Parameters and buffers, tied and strided ones, persistent or not."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.register_buffer("t", self.a.weight.detach().t())
        self.register_buffer("row", self.a.weight.detach()[1:2])
        self.register_buffer("step", torch.tensor(7), persistent=False)
        self.register_buffer("none", torch.zeros(0, 4))

    def forward(self, x):
        y = self.b(self.a(x)) @ self.t + self.row
        return y * self.step, self.none


@case(torch.ones(6, 4), torch.ones(3, 2, 4))
class several_results(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 2)

    def forward(self, x, y):
        a, _, c = x.split(2)
        values, _ = x.max(dim=0)
        _, h = self.rnn(y)
        return a + c, values, h, None, 3


@case(torch.ones(3), torch.ones(3))
class control_flow(nn.Module):
    def forward(self, x, y):
        def outer(x, y):
            return torch.cond(y.sum() > 1, lambda x, y: x + y, lambda x, y: x - y, (x, y))

        return torch.cond(x.sum() > 0, outer, lambda x, y: x * y, (x, y))


batch, half = Dim("batch", max=64), Dim("half")


@case(torch.ones(4, 6), torch.ones(3, 5), dynamic_shapes={"x": {0: batch, 1: 2 * half}, "y": {0: half}})
class dynamic(nn.Module):
    def forward(self, x, y):
        n = x.shape[0] * x.shape[1] + 1
        return x.reshape(-1, x.shape[1] // 2, 2).sum(0) @ torch.ones(2, n // 2), y.repeat(2, 1)


@case(torch.ones(2, 3, 4, 4), 5, "mode", 0.5, torch.tensor([0, 1]))
class arguments(nn.Module):
    """Every kind of argument that prints in its own way."""

    def forward(self, x, i, s, f, idx):
        y = x.masked_fill(x > 0.1, float("-inf")).to(torch.float64, memory_format=torch.channels_last)
        z = torch.full((2,), 1 + 2j, dtype=torch.complex64)
        w = torch.einsum("nchw,nchw->nc", x, x) * 1e-05 + -3.4028234663852886e38
        v = x[:, :, idx, idx]
        p = nn.functional.interpolate(x, scale_factor=(2.0, 1.5))
        return y.float(), z, w, v, p, torch.arange(3, device="cpu"), x.to("cpu", torch.float16)


@case(torch.ones(2, 3))
class writes_whole(nn.Module):
    """Writes that nobody sees through another name: each becomes an out-of-place operation."""

    def forward(self, x):
        a = x + 1
        b = a.relu_()
        a.add_(b, alpha=2)
        c = (x * 2).view(3, 2)
        c.mul_(3).neg_()
        d = torch.empty(3)
        d.copy_(x[0])
        e = x.to(torch.float16)
        e += 1
        k = torch.tensor([1.0, 2.0, 3.0])
        m = x > 0
        m &= x < 2
        return a, b, c, d.detach().zero_(), d, e, k * x, m


@case(torch.ones(2, 3))
class writes_view(nn.Module):
    def forward(self, x):
        a = x + 1
        a[0].add_(1)
        return a


@case(torch.ones(2, 3))
class writes_base(nn.Module):
    """The view is read after its base was written."""

    def forward(self, x):
        a = x + 1
        row = a[0]
        a.add_(1)
        return a, row * 2


@case(torch.ones(2, 3))
class writes_input(nn.Module):
    def forward(self, x):
        x.view(3, 2).add_(1)
        return x * 2


@case(torch.ones(2, 3))
class writes_buffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        self.steps.add_(1)
        return x * 2


@case(torch.ones(2, 3))
class resizes(nn.Module):
    def forward(self, x):
        return (x + 1).resize_(3)


@case(torch.ones(3), strict=False)
class no_grad(nn.Module):
    """Bodies of `torch.no_grad`, one within another; one result is the body's argument."""

    def forward(self, x):
        x = x * 2
        with torch.no_grad():
            y = x * 3
            with torch.enable_grad():
                z = y * 4
            y = y + z
            y.relu_()
        return y * x, z


@case(torch.tensor([1, 0, 2]))
class data_dependent(nn.Module):
    def forward(self, x):
        n = x.max().item()
        torch._check(n >= 0)
        torch._check(n < 10)
        return x.nonzero(), torch.zeros(n), n


@case(torch.ones(3))
class autocast(nn.Module):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x


@case(torch.arange(12.0).reshape(3, 4))
class writes_views_of_views(nn.Module):
    """Depth, siblings, an inverse of each kind."""

    def forward(self, x):
        a = x + 1
        row, part, turned = a[1], a[:, 1:3], a.t().unsqueeze(0)
        row[2:].mul_(2)
        part.view_as(part)[0].zero_()
        turned.squeeze(0).diagonal().add_(1)
        a.view(2, 6).unfold(1, 2, 2)[0].sub_(3)
        with torch.no_grad():
            last = a.split([1, 2])[1].neg_()
        return a, row, part, turned, last


@case(torch.arange(20.0).reshape(5, 4), dynamic_shapes={"x": {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}})
class writes_dynamic(nn.Module):
    def forward(self, x):
        a = x + 1
        a[1:, :-1].add_(1)
        a.view(x.shape[1], -1)[0].fill_(2)
        a.narrow(0, 1, x.shape[0] - 2).mul_(2)
        return a


@case(torch.ones(2, 3))
class writes_shared_weights(nn.Module):
    """A buffer that is a view of another, a parameter that is another."""

    def __init__(self):
        super().__init__()
        w = torch.zeros(2, 3)
        self.register_buffer("w", w)
        self.register_buffer("row", w[1])
        self.a, self.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        self.row.add_(x[0])
        with torch.no_grad():
            self.a.weight.mul_(2)
        return self.b(x) + self.w


@case(torch.ones(2, 3))
class writes_out(nn.Module):
    def forward(self, x):
        a, b = torch.empty(0), torch.zeros(2, 3)
        values, indices = torch.empty(2), torch.empty(2, dtype=torch.int64)
        torch.add(x, 1, out=a)
        torch.mul(x[:, 1:], 2, out=b[:, :2])
        torch.max(x, 1, out=(values, indices))
        return a, b, values, indices


@case(torch.ones(2, 3))
class writes_sizes(nn.Module):
    """Views in place, lists of tensors, a diagonal."""

    def forward(self, x):
        a, b = x * 2, x * 3
        a.unsqueeze_(0).transpose_(1, 2)
        a[:, 1].add_(1)
        b.fill_diagonal_(7)
        torch._foreach_add_([a, b], 2.0)
        return a, b


@case(torch.ones(2, 3))
class writes_repeated(nn.Module):
    """Into some elements of an expanded tensor: not defined."""

    def forward(self, x):
        a = x[0] * 1
        a.expand(2, 3).masked_fill_(x > 1, 0)
        return a


@case(torch.ones(4, 3, 2))
class batch_norm(nn.Module):
    trains = True

    def __init__(self):
        super().__init__()
        self.batch, self.instance = nn.BatchNorm1d(3), nn.InstanceNorm1d(3, track_running_stats=True)

    def forward(self, x):
        return self.batch(x) + self.instance(x)


@case(torch.ones(3, 3))
class autocast_nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(3, 3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch.no_grad():
                y = self.f(x)
            with torch.autocast("cpu", enabled=False):
                z = self.f(x)
            loss = nn.functional.mse_loss(y, x)
            return torch.cat([y, x]), torch.einsum("ij,jk->ik", y, x), torch.softmax(y, -1), z, loss


@torch.library.custom_op("pt2onnx_test::accumulate", mutates_args=("out",))
def accumulate(x: torch.Tensor, out: torch.Tensor) -> None:
    out.add_(x)


@torch.library.custom_op("pt2onnx_test::count", mutates_args=("out",))
def count(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    out.add_(x)
    return x * 2


@count.register_fake
def _(x, out):
    return x * 2


@case(torch.ones(2, 3))
class writes_custom(nn.Module):
    def forward(self, x):
        a = torch.zeros_like(x)
        accumulate(x[0], a[0])
        return a


@case(torch.ones(2, 3), decompose=True)
class functional(nn.Module):
    """After decomposition: mutations in the signature, a custom operator that writes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        self.steps.add_(1)
        a = torch.zeros_like(x)
        b = count(x[:1], a[1:])
        return a, b + self.steps


@case(torch.rand(8), torch.tensor(4), dynamic_shapes=({0: 4 * Dim("quarter", max=16)}, None))
class checks(nn.Module):
    """Checks of a program when it runs: ranges, another condition on a size, a tensor."""

    def forward(self, x, n):
        size = n.item()
        torch._check(size >= 2)
        torch._check(size <= 6)
        torch._check(size % 2 == 0)
        torch._assert_async((x > 0).all(), "all must be positive")
        return torch.zeros(size) + x.sum()


def text(program):
    parts = [str(program.graph), str(program.graph_signature), str(program.range_constraints)]
    return "\n".join(parts) + "\n"


def main():
    named = sys.argv[1:]
    for name, (cls, args, options) in CASES.items():
        if named and name not in named:
            continue
        path = os.path.join(HERE, name + ".pt2")
        decompose = options.pop("decompose", False)
        program = export(cls().train(getattr(cls, "trains", False)), args, **options)
        save(program.run_decompositions({}) if decompose else program, path)
        with open(os.path.join(HERE, name + ".torch.txt"), "w") as f:
            try:
                program = torch.export.load(path)
            except Exception:  # not all that is saved is loaded, such as ops without results
                pass
            f.write(text(program))
    if named:
        return

    class twice(nn.Module):
        def forward(self, x):
            return x * 2

    class thrice(nn.Module):
        def forward(self, x):
            return x * 3

    programs = {m.__name__: export(m(), (torch.ones(1),)) for m in (twice, thrice)}
    package_pt2(os.path.join(HERE, "two_models.pt2"), exported_programs=programs, extra_files={"notes.txt": "hello"})

    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        save(export(nn.Linear(3, 2), (torch.ones(1, 3),)), os.path.join(HERE, "fake_weights.pt2"))
    torch.save({"w": torch.ones(1)}, os.path.join(HERE, "torch_save.pt2"))


if __name__ == "__main__":
    sys.exit(main())
