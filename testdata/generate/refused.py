"""Programs whose ops once had no translation: computed scalars, several masks, projected states, groups that the runtime
counts, grouped products, deep branches. Registered with `make.case` on import."""
from __future__ import annotations


def register(case):
    import torch
    import torch.nn.functional as F
    from torch.export import Dim

    def program(name, function, args, dynamic=None, other=None):
        """A case whose module runs `function` (or is it, if a module); `other` are arguments of other sizes."""
        module = function
        if not isinstance(function, torch.nn.Module):
            class Program(torch.nn.Module):
                def forward(self, *xs):
                    return function(*xs)
            module = Program()
            dynamic = dynamic and (dynamic,)

        def make():
            return module, args, dynamic, other
        make.__name__ = f"refused_{name}"
        case(make)

    def r(*shape):
        generator = torch.Generator().manual_seed(sum(shape) + len(shape))
        return torch.randn(shape, generator=generator)

    half, dyn = torch.tensor(0.5), Dim.DYNAMIC
    # Scalars that the program computes.
    program("baddbmm", lambda c, a, b, t: torch.baddbmm(c, a, b, beta=t.item(), alpha=2),
            (r(2, 3, 4), r(2, 3, 5), r(2, 5, 4), half), None, (r(2, 3, 4), r(2, 3, 5), r(2, 5, 4), torch.tensor(0.0)))
    program("alpha_of_size", lambda a, b: (torch.add(a, b, alpha=a.shape[0]), torch.addcmul(a, a, b, value=a.shape[0] / 2)),
            (r(3, 4), r(3, 4)), ({0: dyn}, {0: dyn}), (r(5, 4), r(5, 4)))
    activations = {
        "leaky_relu": F.leaky_relu, "elu": F.elu, "celu": F.celu, "hardshrink": F.hardshrink, "softplus": F.softplus,
        "threshold": lambda x, t: F.threshold(x, t, t), "renorm": lambda x, t: torch.renorm(x, 2, 0, t),
        "addcdiv": lambda x, t: torch.addcdiv(x, x, x + 9, value=t),
    }
    for name, function in activations.items():
        program(name, lambda x, t, f=function: f(x, t.item()), (r(3, 4), half), None, (r(3, 4), torch.tensor(0.25)))

    # Several masks, which count the same at run time.
    masks = torch.tensor([True, False, True]), torch.tensor([False, True, False, True])

    def written(accumulate):
        return lambda x, a, b, v: torch.index_put(x, (a, b), v, accumulate=accumulate)

    one = torch.tensor([False, True, True]), torch.tensor([False, True, False, False])
    program("masks", written(False), (r(3, 4, 2), *masks, r(2, 2)))
    program("masks_one_value", written(False), (r(3, 4, 2), *masks, r()), None, (r(3, 4, 2), *one, r()))
    program("masks_added", written(True), (r(3, 4, 2), *masks, r(2)), None, (r(3, 4, 2), *one, r(2)))

    # Projected states.
    for name, options in {"lstm": {}, "lstm_no_bias": {"bias": False},
                          "lstm_both": {"num_layers": 2, "bidirectional": True, "batch_first": True}}.items():
        program(f"{name}_projected", torch.nn.LSTM(3, 5, proj_size=2, **options), (r(4, 2, 3),))

    # As many groups as the input has channels or samples.
    program("groups_of_channels", lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1, dilation=2, groups=x.shape[1]),
            (r(2, 3, 10, 11), r(6, 1, 3, 3), r(6)), ({1: dyn}, {0: dyn}, {0: dyn}),
            (r(2, 4, 10, 11), r(8, 1, 3, 3), r(8)))

    def of_samples(x, w):
        n, c, height, width = x.shape
        y = F.conv2d(x.reshape(1, n * c, height, width), w.repeat(n, 1, 1, 1), groups=n, padding=1)
        return y.reshape(n, -1, height, width)

    program("groups_of_samples", of_samples, (r(2, 4, 6, 6), r(5, 4, 3, 3)), ({0: dyn}, None), (r(3, 4, 6, 6), r(5, 4, 3, 3)))

    # Grouped products.
    def grouped(x, w, offsets):
        return torch._grouped_mm(x, w, offs=offsets)

    def ends(*n):
        return torch.tensor(n, dtype=torch.int32)

    program("grouped_columns", grouped, (r(3, 32, 16), r(16, 24), ends(8, 16, 24)))
    program("grouped_sums", grouped, (r(16, 32), r(32, 24), ends(8, 16, 32)))

    program("dim_arange", lambda x: torch._dim_arange(x, 1) + x.long(), (r(2, 3),))
    program("histc_half", lambda x: torch.histc(x, 20, -2, 2), (r(3000).half(),))

    # PyTorch's own meaning of ONNX's attention: the mask comes before the softcap.
    def attention(mode, **options):
        def run(q, k, v, mask):
            return torch.onnx.ops.attention(q, k, v, mask, qk_matmul_output_mode=mode, **options)
        return run

    heads = r(2, 4, 5, 8), r(2, 2, 6, 8), r(2, 2, 6, 8) * 2
    for mode in range(4):
        program(f"attention_{mode}", attention(mode), (*heads, r(5, 6)))
        program(f"attention_softcap_{mode}", attention(mode, softcap=2.0), (*heads, r(5, 6)))

    def nested(depth):
        def branch(x):
            if depth == 0:
                return x * 2
            return torch.cond(x.sum() > depth, lambda x: x + depth, nested(depth - 1), (x,))
        return branch

    program("branches", nested(20), (torch.tensor([4.5, 2.0]),), None, (torch.tensor([-4.5, 2.0]),))
