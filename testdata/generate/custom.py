"""Programs with ops of a library of the user's, and with ONNX's own operators. Registered with `make.case`. The ops of the
library are translated by functions.onnxtxt beside this file; each of their cases has a copy.

    python custom.py ../models/custom_ops.pt
"""

import pathlib

FUNCTIONS = pathlib.Path(__file__).with_name("functions.onnxtxt")


def library():
    """The ops: optional arguments, overloads, lists, several results, sizes known at run time only."""
    import torch
    from torch import Tensor

    lib = torch.library.Library("mylib", "DEF")

    def op(schema, run, shape):
        lib.define(schema)
        name = schema.split("(")[0]
        lib.impl(name, run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"mylib::{name}", shape, lib=lib)

    def mix(x, y, *, weight=0.5):
        return x * weight + y * (1 - weight)

    def minmax(xs, dims, gains):
        stacked = torch.stack(list(xs))
        return stacked.amax(dims) * gains[0], stacked.amin(dims) * gains[1]

    like = lambda x, *_, **__: torch.empty_like(x)
    halves = lambda x, at: [x[:, :at].clone(), x[:, at:].clone()]
    tile = lambda x, sizes, n: x.expand(tuple(sizes)) * n
    op("mix(Tensor x, Tensor y, *, float weight=0.5) -> Tensor", mix, like)
    op("mix.Scalar(Tensor x, Scalar y, *, float weight=0.5) -> Tensor", mix, like)
    op("minmax(Tensor[] xs, int[] dims, float[] gains) -> (Tensor, Tensor)", minmax, minmax)
    op("halves(Tensor x, int at) -> Tensor[]", halves, halves)
    op("tile_rows(Tensor x, SymInt[] sizes, SymInt n) -> Tensor", tile, tile)

    @torch.library.custom_op("mylib::scaled", mutates_args=())
    def scaled(x: Tensor, alpha: float, beta: float = 0.5, bias: Tensor | None = None) -> Tensor:
        y = x * alpha + beta
        return y if bias is None else y + bias

    scaled.register_fake(like)
    return lib


def register(case):
    import torch
    from torch.export import Dim

    global LIBRARY
    LIBRARY = library()  # An op lives as long as its library.
    ops, onnx, auto, r = torch.ops.mylib, torch.ops.onnx, Dim.AUTO, torch.randn

    class Lambda(torch.nn.Module):
        def __init__(self, run, **about):
            super().__init__()
            self.run, self.about = run, about

        def forward(self, *args):
            return self.run(*args)

    class Scaled(torch.nn.Module):
        functions = FUNCTIONS

        def __init__(self):
            super().__init__()
            self.bias = torch.nn.Parameter(torch.arange(3.0))

        def forward(self, x):
            return torch.relu(ops.scaled(x, 2.0, bias=self.bias)) + ops.scaled(x, 3, 1.0, self.bias)

    def program(name, run, args, dynamic_shapes=None, other=None, **about):
        def make():
            module = run() if isinstance(run, type) else Lambda(run, **about)
            if name.startswith("mylib"):
                module.functions = FUNCTIONS
            return module, args(), dynamic_shapes, other() if other else None

        make.__name__ = name
        case(make)

    two = lambda: (r(2, 3), r(2, 3))
    program("mylib_scaled", Scaled, lambda: (r(2, 3),), ({0: auto},), lambda: (r(5, 3),))
    program("mylib_mix", lambda x, y: (ops.mix(x, y), ops.mix(x, 3, weight=0.25)), two)
    program("mylib_minmax", lambda x, y: ops.minmax([x, y], [0, 1], [2.0, 3.0]), two)
    program("mylib_halves", lambda x: [t + 1 for t in ops.halves(x, 2)], lambda: (r(2, 5),))
    program(
        "mylib_tile_rows", lambda x, n: ops.tile_rows(x, [n.shape[0], 3], n.shape[0]), lambda: (r(1, 3), r(4)),
        ((None, {0: auto}),), lambda: (r(1, 3), r(6)),
    )  # fmt: skip
    # `torch.onnx.ops.symbolic` computes nothing in PyTorch.
    symbolic, several, shape = torch.onnx.ops.symbolic, torch.onnx.ops.symbolic_multi_out, {"compare": "shape"}
    program("symbolic_gelu", lambda x: symbolic("Gelu", (x,), attrs={"approximate": "tanh"}, dtype=x.dtype, shape=x.shape), lambda: (r(2, 3),), **shape)
    program(
        "symbolic_topk",
        lambda x: several("TopK", (x, torch.tensor([2])), attrs={"axis": -1}, dtypes=(x.dtype, torch.int64), shapes=((2, 2), (2, 2))),
        lambda: (r(2, 3),), **shape,
    )  # fmt: skip
    heads = lambda q, kv, *lengths: (r(1, q, 3, 8), *(r(1, kv, n, 8) for n in lengths))
    program("attention23_grouped", lambda q, k, v: onnx.Attention.opset23(q, k, v)[0], lambda: heads(4, 2, 5, 5))
    program("attention23_flat", lambda q, k, v: onnx.Attention.opset23(q, k, v, q_num_heads=4, kv_num_heads=2)[0], lambda: (r(1, 3, 32), r(1, 5, 16), r(1, 5, 16)))
    program("attention23_past", lambda q, k, v, pk, pv: onnx.Attention.opset23(q, k, v, None, pk, pv)[:3], lambda: heads(2, 2, 3, 3, 4, 4))
    rotary, positions = onnx.RotaryEmbedding.opset23, lambda: torch.tensor([[0, 1, 2]])
    program("rotary23_positions", lambda x, c, s, p: rotary(x, c, s, p), lambda: (r(1, 4, 3, 8), r(10, 4), r(10, 4), positions()))
    program("rotary23_interleaved", lambda x, c, s: rotary(x, c, s, interleaved=True), lambda: (r(1, 4, 3, 8), r(1, 3, 4), r(1, 3, 4)))
    program("rotary23_flat", lambda x, c, s, p: rotary(x, c, s, p, num_heads=4, rotary_embedding_dim=4), lambda: (r(1, 3, 32), r(10, 2), r(10, 2), positions()))

    def foo(x):
        attributes = {"i": 1, "f": 0.5, "s": "text", "is_": [1, 2], "fs": [1.0, 2.5], "ss": ["a", "b"], "b": True}
        told = dict(dtype=torch.float32, shape=(x.shape[0], 7), version=3, metadata_props={"who": "me"})
        return symbolic("custom.domain::Foo", (x, None, x), attrs=attributes, **told)

    # No case, as nothing runs it: testdata/models/symbolic.pt2.
    program("symbolic_foo", foo, lambda: (r(2, 3),), ((({0: auto}),),))


def script(path):
    """Writes testdata/models/custom_ops.pt: a module in TorchScript with ops of the library."""
    import torch
    from torch import Tensor

    lib = library()

    class Calls(torch.nn.Module):
        def forward(self, x: Tensor, y: Tensor):
            mixed = torch.ops.mylib.mix(x, y, weight=0.25)
            high, low = torch.ops.mylib.minmax([x, mixed], [0], [2.0, 0.5])
            left, right = torch.ops.mylib.halves(high, 1)
            return torch.ops.mylib.tile_rows(left, [-1, 3], 2), right + low[:, 1:]

    torch.jit.script(Calls()).save(str(path))
    del lib


if __name__ == "__main__":
    import sys

    script(*sys.argv[1:])
