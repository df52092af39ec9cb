"""Programs that write into their tensors, as conformance cases: needs torch 2.15.
cases.py ROOT [--tools FOLDER of makecase.py] [--sampled N]
Writes ROOT/mutations/NAME for each program below, and with --sampled ROOT/views/NAME for N programs drawn from
(chain of 1 to 3 views) x (operator that writes), each reading the base, the view and a sibling afterwards."""
from __future__ import annotations
import argparse, random, sys
import torch
from torch import nn
from torch.export import Dim, export

torch.manual_seed(0)
X = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 4 - 1
CASES = {}


def case(*args, dynamic=None, **options):
    """dynamic: {argument: {dim: symbol}}; then the other sizes are one larger per symbol."""

    def add(f):
        CASES[f.__name__] = (f, args, dynamic, options)
        return f

    return add


def module(f):
    """A function, or a class of modules."""
    if isinstance(f, type):
        return f().train(getattr(f, "trains", False))

    class Function(nn.Module):
        def forward(self, *args):
            return f(*args)

    return Function()


@case(X)
def view_of_view(x):
    x = x.clone()
    x[0][1:3].mul_(2)
    return x


@case(X)
def alias_of_alias(x):
    x = x * 2
    a = x.detach()
    b = a.view(4, 3).t()
    b.add_(1)
    return x, a, b


@case(X)
def siblings_see_writes(x):
    x = x + 0
    rows, column = x[1:], x[:, 2]
    rows.add_(10)
    column.mul_(3)
    rows.sub_(1)
    return x, rows, column


@case(X)
def base_written_views_read(x):
    x = x + 0
    a, b, c = x[0], x.t(), x.diagonal()
    x.add_(1)
    return a, b, c, x


@case(X)
def overlapping_slices(x):
    x = x.clone()
    a, b = x[:, :3], x[:, 1:]
    a.add_(1)
    b.mul_(2)
    return a, b, x


@case(X)
def writes_in_a_loop(x):
    out = torch.zeros_like(x)
    for i in range(3):
        out[i] = x[i] * i
        out[:, i] += 1
    return out


@case(X)
def same_view_twice(x):
    y = x.clone()
    row = y[1]
    row.add_(1)
    row.mul_(2)
    row[2:].neg_()
    return y


@case(X)
def dead_writes(x):
    y = x.clone()
    y[0].add_(1)
    return x * 2


@case(X)
def expanded_read(x):
    b = x[0].clone()
    e = b.expand(3, 4)
    b.add_(1)
    return e + x, b


@case(X)
def expand_that_repeats_nothing(x):
    b = x.clone()
    b.unsqueeze(0).expand(1, 3, 4).add_(1)
    return b


@case(X)
def masks(x):
    y = x.clone()
    y[y > 0] = 0
    y[y < -0.5] *= 2
    y.masked_fill_(y == 0, 5)
    return y


@case(X, torch.tensor([2, 0]))
def indexed(x, index):
    y = x.clone()
    y[index] = 1
    y.index_add_(0, index, x[:2])
    y[:, index] += 2
    y.index_copy_(1, index, x[:, :2])
    y.index_fill_(0, index[:1], 3)
    return y


@case(X, torch.tensor([[0, 1, 2, 0]]))
def scattered(x, index):
    y = x.clone()
    y.scatter_(0, index, x[:1])
    y.scatter_add_(0, index, x[:1])
    y.t().scatter_(1, index.t(), 7.0)
    return y


@case(X)
def masked_scattered(x):
    y = x.clone()
    y.masked_scatter_(x > 0, x.flip(0))
    return y


@case(X)
def written_input(x):
    x.add_(1)
    x[0] = 0
    return x * 2


@case(X)
def written_input_returned(x):
    y = x.t()
    y.mul_(2)
    return x, y


@case(X)
class counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(0))
        self.register_buffer("sums", torch.zeros(4), persistent=False)

    def forward(self, x):
        self.steps += 1
        self.sums[1:].add_(x.sum(0)[1:])
        return x * self.steps, self.sums


@case(X)
class reassigned_buffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(4))

    def forward(self, x):
        self.state = self.state * 0.5 + x[0]
        return self.state + 1


@case(torch.tensor([1]), X[:1])
class cache_index_copy(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kv", torch.zeros(5, 4))

    def forward(self, at, x):
        self.kv.index_copy_(0, at, x)
        return self.kv.sum(0), self.kv


@case(torch.tensor([1]), X[:1])
class cache_index_put(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kv", torch.zeros(2, 5, 4))

    def forward(self, at, x):
        self.kv[:, at] = x
        return self.kv


@case(X[:2])
class cache_slice(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kv", torch.zeros(5, 4))

    def forward(self, x):
        self.kv[1:3].copy_(x)
        return self.kv @ self.kv.t()


@case(X)
class tied(nn.Module):
    """Two buffers and a parameter that share memory."""

    def __init__(self):
        super().__init__()
        w = torch.arange(12.0).reshape(3, 4)
        self.register_buffer("a", w)
        self.register_buffer("b", w[1:])
        self.register_buffer("c", w.t())

    def forward(self, x):
        self.b.add_(x[:2])
        self.c[0] = 5
        return self.a, self.b, self.c


@case(X)
class tied_whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4, bias=False)
        self.b = nn.Linear(4, 4, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        with torch.no_grad():
            self.a.weight.mul_(2)
        return self.b(x)


@case(torch.randn(5, 3, 4))
class batch_norm(nn.Module):
    trains = True

    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        y = self.bn(x)
        return y, self.bn.running_mean, self.bn.running_var, self.bn.num_batches_tracked


@case(torch.randn(5, 3, 4))
class batch_norm_twice(nn.Module):
    trains = True

    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3, momentum=0.3)

    def forward(self, x):
        return self.bn(self.bn(x) * 2), self.bn.running_mean + self.bn.running_var


@case(torch.randn(5, 3, 4))
class instance_norm(nn.Module):
    trains = True

    def __init__(self):
        super().__init__()
        self.norm = nn.InstanceNorm1d(3, affine=True, track_running_stats=True)

    def forward(self, x):
        return self.norm(x), self.norm.running_mean, self.norm.running_var


@case(torch.randn(5, 3, 4))
class running_mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        self.mean.lerp_(x.mean((0, 2)), 0.1)
        return x - self.mean[:, None]


@case(X)
def pieces(x):
    y = x.clone()
    with torch.no_grad():
        a, b = y.chunk(2, 1)
        c, d = y.split([1, 2])
        e, f, g = y.unbind(0)
    a.add_(1)
    d.mul_(2)
    g.zero_()
    return y, a, b, c, d, e, f, g


@case(torch.randn(3, 4, dtype=torch.complex64))
def complex_parts(z):
    z = z.clone()
    z.real.mul_(2)
    z.imag.add_(1)
    torch.view_as_real(z)[0].zero_()
    return z, torch.view_as_complex(torch.view_as_real(z)).imag


@case(X)
def bytes_as_ints(x):
    x = x.clone()
    x.view(torch.int32)[0].zero_()
    return x


@case(X)
def diagonals(x):
    x = x.clone()
    x.diagonal(1).fill_(9)
    x.fill_diagonal_(2)
    torch.diagonal(x, -1).add_(x[0, :2])
    return x


@case(X)
def windows(x):
    x = x.clone()
    w = x.unfold(1, 2, 2)
    w[:, 1].add_(1)
    w.mul_(2)
    return x, w


@case(X)
def strided(x):
    x = x.clone()
    y = x.as_strided((2, 2), (4, 2), 1)
    y.add_(1)
    z = x[1:].as_strided((2,), (1,))
    z.mul_(2)
    return x, y, z


@case(X)
def outs(x):
    a, b = torch.empty(0), torch.zeros(3, 4)
    torch.add(x, 1, out=a)
    torch.mul(x[:, :2], 2, out=b[:, 1:3])
    values, indices = torch.empty(3), torch.empty(3, dtype=torch.int64)
    torch.max(x, 1, out=(values, indices))
    return a, b, values, indices


@case(X, X.double())
def outs_of_other_types(x, y):
    z, n = torch.zeros(3, 4, dtype=torch.float64), torch.zeros(3, 4, dtype=torch.int64)
    torch.add(x, x, out=z)
    torch.gt(x, 0, out=n)
    x = x.clone()
    x.mul_(y)
    x[0].ge_(0)
    return x, z, n


@case(X)
def diagonals_of_other_tensors(x):
    tall, cube = x.reshape(6, 2).clone(), x[:, :3].expand(3, 3, 3).clone()
    tall.fill_diagonal_(7, wrap=True)
    cube.fill_diagonal_(8)
    return tall, cube


@case(X)
def foreach(x):
    xs = [x.clone(), x * 2]
    torch._foreach_add_(xs, 1.0)
    torch._foreach_mul_(xs, xs)
    torch._foreach_addcmul_(xs, xs, [x, x], 0.5)
    return xs + list(torch._foreach_neg(xs))


@case(X)
def sizes_in_place(x):
    y = x.clone()
    y.unsqueeze_(0)
    y.transpose_(1, 2)
    y[:, 1].add_(1)
    y.squeeze_(0)
    return y, x.clone().t_().add_(1)


@case(X)
def data(x):
    y = x.clone()
    z = y[0]
    y.data = x * 2
    y.add_(1)
    return y, z


@case(X)
def conditional(x):
    y = x.clone()

    def yes(y):
        z = y.clone()
        z[0] = 1
        return z

    return torch.cond(y.sum() > 0, yes, lambda y: y * 2, (y,)), y


@case(X)
def under_no_grad(x):
    y = x.clone()
    with torch.no_grad():
        y[1:].add_(1)
        z = y.view(-1)
    z[0] = 7
    return y, z


@case(X)
def not_views(x):
    """Things that may be views, and are copies here."""
    t = x.t()
    a = t.reshape(-1)
    b = t.contiguous()
    c = x.to(torch.float64)
    a.add_(1)
    b.mul_(2)
    c.sub_(3)
    return x, a, b, c


@case(X)
def views_after_all(x):
    """Things that may be copies, and are views here."""
    x = x.clone()
    a = x.reshape(-1)
    b = x.contiguous()
    c = x.to(torch.float32)
    d = x.flatten()
    a[0] = 1
    b[1] = 2
    c[:, 1] = 3
    d[-1] = 4
    return x, a, b, c, d


@case(X)
def promoted(x):
    y = x.to(torch.float16)
    y.add_(x)
    z = torch.zeros(3, 4, dtype=torch.int64)
    z.copy_(x * 4)
    z[0].add_(True)
    return y, z


@case(X)
def dropped_out(x):
    y = x.clone()
    z = nn.functional.dropout(y, 0.5, False)
    z.add_(1)
    return y


@case(X)
def conv_activations(x):
    y = nn.functional.relu(x[None] * 2, inplace=True)
    y += 1
    y = nn.functional.leaky_relu(y - 2, inplace=True)
    y.clamp_(-1, 1).pow_(2).sqrt_()
    return y


@case(X, dynamic={"x": {0: "n", 1: "m"}})
def dynamic_slices(x):
    y = x.clone()
    y[1:, :-1].add_(1)
    y[-1] = 0
    y.view(-1)[::2].mul_(2)
    return y


@case(X, dynamic={"x": {0: "n", 1: "m"}})
def dynamic_views(x):
    y = x.clone()
    a, b = y.t().unsqueeze(0), y.view(x.shape[1], -1)
    a[0, 1].fill_(3)
    b.add_(1)
    return y, a, b


@case(X, dynamic={"x": {0: "n"}})
def dynamic_pieces(x):
    y = x.clone()
    a, b = y.split([1, x.shape[0] - 1])
    b.add_(a)
    y.chunk(2, 1)[1].neg_()
    return y, b


@case(X, dynamic={"x": {0: "n"}})
class dynamic_cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kv", torch.zeros(8, 4))

    def forward(self, x):
        self.kv[: x.shape[0]] = x
        self.kv.narrow(0, 1, x.shape[0]).mul_(2)
        return self.kv


@case(torch.randn(2, 3, 4, 4), dynamic={"x": {0: "n"}})
def channels_last(x):
    y = x.to(memory_format=torch.channels_last)
    z = y.permute(0, 2, 3, 1)
    z[..., 0].add_(1)
    w = y.contiguous()
    w.mul_(2)
    return y, z, w


@case(X)
def data_dependent(x):
    y = x.clone()
    n = (x > 0).sum().item()
    torch._check(n >= 1)
    torch._check(n <= 12)
    y.view(-1).narrow(0, 0, n).fill_(1)
    return y


VIEWS = {
    "select": lambda x: x.select(0, 1),
    "select_last": lambda x: x.select(-1, 0),
    "slice": lambda x: x[1:],
    "slice_step": lambda x: x[..., ::2],
    "slice_end": lambda x: x[..., :-1],
    "narrow": lambda x: x.narrow(0, 0, 2),
    "view": lambda x: x.view(-1, x.shape[0]),
    "view_flat": lambda x: x.view(-1),
    "reshape": lambda x: x.reshape(x.shape[-1], -1),
    "view_as": lambda x: x.view_as(x.detach()),
    "flatten": lambda x: x.flatten(),
    "unflatten": lambda x: x.unflatten(-1, (-1, 1)),
    "transpose": lambda x: x.transpose(0, -1),
    "permute": lambda x: x.permute(*reversed(range(x.dim()))),
    "movedim": lambda x: x.movedim(0, -1),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "t": lambda x: x.t(),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "adjoint": lambda x: x.adjoint(),
    "squeeze": lambda x: x.unsqueeze(1).squeeze(1),
    "squeeze_all": lambda x: x[:1].squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "diagonal": lambda x: x.diagonal(),
    "diagonal_off": lambda x: x.diagonal(1, -1, 0),
    "unbind": lambda x: x.unbind(0)[1],
    "split": lambda x: x.split(2, -1)[-1],
    "split_sizes": lambda x: x.split([1, x.shape[0] - 1])[1],
    "chunk": lambda x: x.chunk(2)[0],
    "tensor_split": lambda x: x.tensor_split(2, -1)[1],
    "unfold": lambda x: x.unfold(-1, 2, 2),
    "expand": lambda x: x.unsqueeze(0).expand(1, *x.shape),
    "expand_as": lambda x: x.expand_as(x),
    "as_strided": lambda x: x.as_strided((2, 2), (2, 1), x.storage_offset()),
    "detach": lambda x: x.detach(),
    "contiguous": lambda x: x.contiguous(),
    "to": lambda x: x.to(torch.float32),
    "view_dtype": lambda x: x.view(torch.int32).view(torch.float32),
    "real": lambda x: x.real,
}
WRITES = {
    "add_": lambda v: v.add_(1),
    "mul_": lambda v: v.mul_(v),
    "sub_": lambda v: v.sub_(v.sum()),
    "div_": lambda v: v.div_(4),
    "copy_": lambda v: v.copy_(torch.ones(())),
    "fill_": lambda v: v.fill_(3),
    "zero_": lambda v: v.zero_(),
    "setitem": lambda v: v.__setitem__(..., 2),
    "setitem_mask": lambda v: v.__setitem__(v > 0, 2.0),
    "setitem_first": lambda v: v.__setitem__(0, 5),
    "index_put_": lambda v: v.index_put_((torch.tensor([0]),), torch.tensor(9.0)),
    "index_add_": lambda v: v.index_add_(0, torch.tensor([0]), v[:1] + 1),
    "index_copy_": lambda v: v.index_copy_(0, torch.tensor([1]), v[:1] + 1),
    "index_fill_": lambda v: v.index_fill_(0, torch.tensor([1]), 6),
    "masked_fill_": lambda v: v.masked_fill_(v < 0, 8),
    "scatter_": lambda v: v.scatter_(0, torch.zeros_like(v[:1], dtype=torch.int64), v[1:2] * 2),
    "relu_": lambda v: v.relu_(),
    "clamp_": lambda v: v.clamp_(-0.5, 0.5),
    "sigmoid_": lambda v: v.sigmoid_(),
    "neg_": lambda v: v.neg_(),
    "iadd": lambda v: v.__iadd__(v.flip(0)),
    "lerp_": lambda v: v.lerp_(torch.ones_like(v), 0.25),
    "addcmul_": lambda v: v.addcmul_(v, v),
    "out": lambda v: torch.add(v.clone(), 1, out=v),
}


def chain(views, sibling, write):
    class Chain(nn.Module):
        def forward(self, x):
            base = x * 1.5
            v = base
            with torch.no_grad():
                for view in views:
                    v = VIEWS[view](v)
                other = VIEWS[sibling](base)
                WRITES[write](v)
            return base, v.clone(), other.clone()

    return Chain()


def sampled(count):
    rng = random.Random(0)
    names, writes = list(VIEWS), list(WRITES)
    seen, tries = set(), 0
    while len(seen) < count and tries < 8 * count:
        tries += 1
        views = tuple(rng.choice(names) for _ in range(rng.choice((1, 2, 2, 3))))
        # All views and writes are drawn once at least.
        if tries <= len(names):
            views = (names[tries - 1],)
        write = writes[tries % len(writes)]
        key = (views, write)
        if key in seen:
            continue
        model, x = chain(views, rng.choice(names), write), X.reshape(4, 3) if tries % 2 else X.repeat(2, 1)[:4]
        try:
            model(x.clone())
        except Exception:
            continue
        for dynamic in (False, True):
            spec = {"x": {0: Dim.AUTO, 1: Dim.AUTO}} if dynamic else None
            try:
                program = export(model, (x,), dynamic_shapes=spec)
            except Exception:
                continue
            if dynamic and not any(isinstance(d, torch.SymInt) for n in program.graph.nodes if n.op == "placeholder" for d in n.meta["val"].shape):
                continue
            seen.add(key)
            yield ".".join((*views, write)) + (".dynamic" if dynamic else ""), program, (x,)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--tools", default="/work/shared/tools")
    parser.add_argument("--sampled", type=int, default=0)
    options = parser.parse_args()
    sys.path.insert(0, options.tools)
    import makecase

    for name, (f, args, dynamic, kwargs) in CASES.items():
        spec = None
        if dynamic:
            dims = {s: Dim.DYNAMIC for sizes in dynamic.values() for s in sizes.values()}
            first = {d: dims[s] for d, s in next(iter(dynamic.values())).items()}
            spec = ((first,),) if not isinstance(f, type) else ({k: v for k, v in first.items()},)
            if not isinstance(f, type):
                spec = {"args": ((first),)}
        try:
            program = export(module(f), args, dynamic_shapes=spec, **kwargs)
        except Exception as error:
            print(f"{name}: not exported: {str(error)[:300]}")
            continue
        alt = makecase.alt_inputs(program, args) if dynamic else None
        if dynamic and alt is None:
            print(f"{name}: no other sizes")
        alt = alt and (alt[0], alt[1])
        makecase.save_case(options.root, "mutations", name, program, args, alt=alt, run_peer=False)
    count = 0
    for name, program, args in sampled(options.sampled) if options.sampled else ():
        alt = makecase.alt_inputs(program, args) if name.endswith(".dynamic") else None
        makecase.save_case(options.root, "views", name, program, args, alt=alt, run_peer=False)
        count += 1
    print(len(CASES), "programs,", count, "sampled")


if __name__ == "__main__":
    sys.exit(main())
