#!/usr/bin/env python3
"""Makes the archives of `testdata/seeds`: the examples of five pages on PyTorch's exporters, and those of docs/exporting.md, with
PyTorch's inputs and outputs.

    venv/bin/python testdata/generate/seeds.py testdata/seeds/archives.tar.zst

Each example is NAME.pt2 or NAME.pt (TorchScript), and NAME.safetensors with input.N and output.N. Large weights repeat a short
pattern, so that the bundle is small.
"""
from __future__ import annotations

import ast
import copy
import pathlib
import re
import sys
import tempfile

import make
import torch
from safetensors.torch import save_file
from torch import nn

EXAMPLES = {}


def example(make):
    EXAMPLES[make.__name__] = make
    return make


class MLPModel(nn.Module):
    """The perceptron of both pages of torch.onnx, with one input or three."""

    def __init__(self, combined):
        super().__init__()
        self.fc0 = nn.Linear(8, 8)
        self.fc1 = nn.Linear(8, 4)
        self.fc2 = nn.Linear(4, 2)
        self.fc3 = nn.Linear(2, 2)
        if combined:
            self.fc_combined = nn.Linear(24, 8)

    def layers(self, x):
        for layer in (self.fc0, self.fc1, self.fc2):
            x = torch.sigmoid(layer(x))
        return self.fc3(x)


class Combined(MLPModel):
    def forward(self, tensor_x, input_dict, input_list):
        x = torch.cat([tensor_x, input_dict["tensor_x"], input_list[0]], dim=1)
        return self.layers(torch.sigmoid(self.fc_combined(x)))


class Single(MLPModel):
    def forward(self, tensor_x):
        return self.layers(tensor_x)


@example
def mlp():
    batch = {0: torch.export.Dim("batch_size")}
    args = torch.rand(97, 8), {"tensor_x": torch.rand(97, 8)}, [torch.rand(97, 8)]
    return Combined(True), args, (batch, {"tensor_x": batch}, [batch])


@example
def mlp_static():
    return Single(False), (torch.rand(97, 8),)


class SimpleAddModel(nn.Module):
    def forward(self, x, y):
        return torch.add(x, y)


@example
def simple_add():
    return SimpleAddModel(), (torch.rand(2, 3), torch.rand(2, 3))


class MyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(42.0))

    def forward(self, x):
        return self.weight + x


@example
def my_model():
    return MyModel(), (torch.randn(2, 2, 2),)


def add(carry, y):
    next_carry = carry + y
    return [next_carry, next_carry.clone()]


class ScanModel(nn.Module):
    def forward(self, x):
        init = torch.zeros_like(x[0])
        carry, _ = torch.ops.higher_order.scan(add, [init], [x], additional_inputs=[])
        return carry


@example
def scan():
    return ScanModel(), (torch.arange(1.0, 10).reshape(3, 3),)


class UpdateModel(nn.Module):
    def forward(self, x, update, kv_index):
        x = x.clone()
        x[..., kv_index] = update
        return x


@example
def update():
    return UpdateModel(), (torch.ones(4, 4, 10), torch.arange(10.0, 12).reshape(1, 1, 2), torch.tensor([1, 2], dtype=torch.int32))


class Reads(nn.Module):
    """The patterns of indexing that the page calls unsupported."""

    def forward(self, data):
        return data[torch.tensor([[1, 2], [2, -3]]), torch.tensor([-2, 3])]


class Writes(nn.Module):
    def forward(self, data, rows, apart, negative):
        first, second, third = data.clone(), data.clone(), data.clone()
        first[torch.tensor([[1, 2], [2, 3]]), torch.tensor([2, 3])] = rows
        second[torch.tensor([2, 3]), :, torch.tensor([1, 2])] = apart
        third[torch.tensor([1, -2]), torch.tensor([-2, 3])] = negative
        return first, second, third


@example
def reads():
    return Reads(), (torch.randn(4, 5, 3),)


@example
def writes():
    return Writes(), (torch.randn(4, 5, 3), torch.randn(2, 2, 3), torch.randn(2, 5), torch.randn(2, 3))


class Reshape(nn.Module):
    """A number that a tensor holds: a trace keeps it, `torch.export` makes it a size."""

    def forward(self, x, y):
        return x.reshape(y.item(), -1)


@example
def reshape():
    return Reshape(), (torch.randn(4, 6), torch.tensor(3))


class MyRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)


class Function(nn.Module):
    def forward(self, x):
        return MyRelu.apply(x)


@example
def my_relu():
    return Function(), (torch.randn(3, 4),)


@torch.library.custom_op("custom_ops::foo_forward", mutates_args=())
def foo_forward(input1: torch.Tensor, input2: torch.Tensor, attr1: float, attr2: int) -> torch.Tensor:
    return input1 * attr1 + input2 * attr2


@foo_forward.register_fake
def _(input1, input2, attr1, attr2):
    return torch.empty_like(input1)


class FooModel(nn.Module):
    def __init__(self, attr1, attr2):
        super().__init__()
        self.attr1 = attr1
        self.attr2 = attr2

    def forward(self, input1, input2):
        return torch.ops.custom_ops.foo_forward(input1, input2, self.attr1, self.attr2)


@example
def foo():
    return FooModel(0.5, 3), (torch.randn(2, 3), torch.randn(2, 3))


FOO = """<domain: "custom_ops", opset_import: ["" : 18]>
foo_forward <attr1, attr2> (input1, input2) => (y) {
  a = Constant <value_float: float = @attr1> ()
  b = Constant <value_int: int = @attr2> ()
  c = Cast <to: int = 1> (b)
  d = Mul (input1, a)
  e = Mul (input2, c)
  y = Add (d, e)
}
"""


@example
def elu():
    return "trace", nn.ELU(), (torch.randn(1),)


class ImplicitCastType(nn.Module):
    def forward(self, x):
        y = x + 2
        return y + 3


@example
def implicit_cast():
    return "script", ImplicitCastType(), (torch.tensor([1.0]),)


class Loop(nn.Module):
    """A loop that scripting keeps."""

    def forward(self, x: torch.Tensor, n: int):
        for i in range(n):
            if i % 2 == 0:
                x = x + i
            else:
                x = x * 2
        return x


@example
def loop():
    return "script", Loop(), (torch.randn(3), 5)


@example
def lists():
    class Lists(nn.Module):
        def forward(self, x):
            return [x + 1, {"foo": x, "bar": x * 2}]

    return Lists(), (torch.randn(2),)


@example
def alexnet():
    import torchvision

    # The page's classifier has 4096 wide layers; the pattern of weights does not make those small to unpack.
    model = torchvision.models.alexnet(weights=None)
    model.classifier[1] = nn.Linear(9216, 64)
    model.classifier[4] = nn.Linear(64, 64)
    model.classifier[6] = nn.Linear(64, 1000)
    return "trace", model, (torch.randn(3, 1, 224).repeat(10, 1, 224, 1),)


def resnet(shapes):
    import torchvision

    model = torchvision.models.resnet.ResNet(torchvision.models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10)
    return model, (torch.randn(10, 3, 32, 32),), shapes


@example
def resnet_fixed():
    return resnet(None)


@example
def resnet_dynamic():
    return resnet(({0: torch.export.Dim("batch_size")},))


def recipes():
    """The classes of docs/exporting.md by name."""
    page = pathlib.Path(__file__).parents[2] / "docs" / "exporting.md"
    names = {"torch": torch}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
        tree = ast.parse(block)
        tree.body = [statement for statement in tree.body if isinstance(statement, ast.ClassDef)]
        exec(compile(tree, page.name, "exec"), names)
    return names


@example
def detector():
    return recipes()["Detector"](), (torch.randn(2, 5),)


@example
def join():
    batch, left, right = (torch.export.Dim(name) for name in ("batch", "left", "right"))
    return recipes()["Join"](), (torch.randn(2, 3), torch.randn(2, 4)), ({0: batch, 1: left}, {0: batch, 1: right})


@example
def head():
    return recipes()["Head"](), (torch.randn(3, 5, 4),), ({0: torch.export.Dim.DYNAMIC},)


@example
def head_of_one():
    return recipes()["Head"](), (torch.randn(1, 5, 4),), ({0: torch.export.Dim.AUTO},)


@example
def counter():
    return recipes()["Counter"](), (torch.ones(3),)


@example
def attention():
    tensors = torch.randn(2, 3, 8), torch.randn(2, 4, 8), torch.randn(2, 4, 8)
    batch, past = torch.export.Dim("batch"), {0: torch.export.Dim("batch"), 1: torch.export.Dim("past")}
    return recipes()["Attention"](), tensors, ({0: batch, 1: torch.export.Dim("length")}, past, past)


def patterned(module):
    """Weights of 17 numbers in turn, of the size that an initialised layer has."""
    for name, tensor in module.state_dict().items():
        if tensor.is_floating_point() and tensor.numel() > 10_000:
            step = (torch.arange(17, dtype=torch.float32) - 8) / 8 / tensor[0].numel() ** 0.5
            tensor.copy_(step.repeat(tensor.numel() // 17 + 1)[: tensor.numel()].reshape(tensor.shape))


def save(name, made, folder):
    how, module, args, *shapes = made if isinstance(made[0], str) else ("export", *made)
    module.eval()
    patterned(module)
    copied = copy.deepcopy(args)
    if how == "export":
        program = torch.export.export(module, args, dynamic_shapes=shapes[0] if shapes else None, strict=False)
        torch.export.save(program, folder / f"{name}.pt2")
    else:
        made = torch.jit.trace(copy.deepcopy(module), args) if how == "trace" else torch.jit.script(module)
        torch.jit.save(made, folder / f"{name}.pt")
    with torch.no_grad():
        outputs = module(*args)
    numbers = {f"input.{i}": t for i, t in enumerate(make.leaves(copied))} | {f"output.{i}": t for i, t in enumerate(make.leaves(outputs))}
    save_file({n: t.contiguous().clone() for n, t in numbers.items()}, folder / f"{name}.safetensors")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, made in EXAMPLES.items():
            torch.manual_seed(0)
            save(name, made(), folder)
            print(name)
        (folder / "foo.onnxtxt").write_text(FOO)
        make.bundle(folder, sys.argv[1])


if __name__ == "__main__":
    main()
