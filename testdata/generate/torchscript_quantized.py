"""TorchScript programs with state or quantised modules. `torchscript.py` saves them as cases."""
from __future__ import annotations

from typing import Tuple

import torch
import torch.ao.quantization as quantization
import torch.nn.functional as F
from torch import Tensor, nn

CASES = {}
"""Name: (how, module, options, inputs, other inputs)."""
CALLS = {}
"""Name: (module, options, inputs of calls, state before the first call). The samples of the case are the first and the last call."""
QUANTA = {}
"""Name: the quantum of the results. ONNX Runtime rounds some values to the other side, where it sums integers."""


def case(name, how, module, inputs, *samples):
    CASES[name] = (how, module, {"input": inputs}, *samples)


class Recurrent(nn.Module):
    """State that is empty at first, and numbers that the first call fixes: what voice detectors do."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(4, 3)
        self.reset()

    @torch.jit.export
    def reset(self):
        self.state = torch.zeros(0)
        self.context = torch.zeros(0)
        self.last_rate = 0

    def forward(self, x: Tensor, rate: int) -> Tensor:
        if self.last_rate and self.last_rate != rate:
            self.reset()
        if not len(self.context):
            self.context = torch.zeros([x.size(0), 2])
        x = torch.cat([self.context, x], 1)
        if len(self.state):
            h, c = self.cell(x, (self.state[0], self.state[1]))
        else:
            h, c = self.cell(x)
        self.state = torch.stack([h, c])
        self.context = x[:, -2:]
        self.last_rate = rate
        return h.relu() * 2


CALLS["state_empty_at_first"] = (
    Recurrent(), {"input": {"x": "float32[n,2]", "rate": "16000"}, "state": "pairs"},
    [(torch.randn(3, 2), 16000) for _ in range(3)],
    {"state": torch.zeros(2, 3, 3), "context": torch.zeros(3, 2)}, ["state", "context"])


class Cache(nn.Module):
    """A cache that grows, and a number that counts."""

    def __init__(self):
        super().__init__()
        self.rows = torch.zeros(0, 3)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.rows = torch.cat([self.rows, x])
        self.calls += 1
        return self.rows.sum(0) * self.calls


CALLS["state_that_grows"] = (
    Cache(), {"input": {"x": "float32[2,3]"}, "state": "pairs"}, [(torch.randn(2, 3),) for _ in range(3)],
    {"rows": torch.zeros(0, 3), "calls": torch.tensor(0)}, ["rows", "calls"])


def parts(tree, result=False):
    """Nested values with three tensors for a quantised one: its integers, scales and zero points."""
    if isinstance(tree, (list, tuple)):
        return [parts(item, result) for item in tree]
    if not (isinstance(tree, Tensor) and tree.is_quantized):
        return tree
    ints = tree.int_repr()
    if tree.qscheme() == torch.per_tensor_affine:
        scale, zero = torch.tensor(tree.q_scale()), torch.tensor(tree.q_zero_point())
    else:
        scale, zero = tree.q_per_channel_scales(), tree.q_per_channel_zero_points()
    types = (torch.float32, ints.dtype) if result else (torch.float64, torch.int64)
    return [ints, scale.to(types[0]), zero.to(types[1])]


def converted(module, x, engine="fbgemm", fuse=None):
    """A module after quantisation in eager mode."""
    torch.manual_seed(1)
    torch.backends.quantized.engine = engine
    module.eval()
    if fuse:
        module = quantization.fuse_modules(module, fuse)
    module.qconfig = quantization.get_default_qconfig(engine)
    quantization.prepare(module, inplace=True)
    for _ in range(3):
        module(torch.randn_like(x))
    return quantization.convert(module, inplace=True)


class Network(nn.Module):
    """Convolutions, sums, products, pools and a linear layer."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.first, self.norm, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.second = nn.Conv2d(8, 8, 3, stride=2, groups=2)
        self.add, self.mul, self.cat = (nn.quantized.FloatFunctional() for _ in range(3))
        self.pool, self.swish, self.last = nn.AdaptiveAvgPool2d(1), nn.Hardswish(), nn.Linear(16, 5)

    def forward(self, x):
        x = F.max_pool2d(self.relu(self.norm(self.first(self.quant(x)))), 2)
        y = self.second(x)
        y = self.add.add(y, y)
        y = self.cat.cat([self.swish(y), self.mul.mul(y, torch.sigmoid(y))], 1)
        return self.dequant(self.last(self.pool(y).flatten(1)))


IMAGES = {"x": "float32[n,3,H,W]"}
X = torch.randn(2, 3, 12, 12)
SIZES = (X,), (torch.randn(3, 3, 10, 14),)
for engine in ("fbgemm", "qnnpack"):
    made = converted(Network(), X, engine, [["first", "norm", "relu"]])
    case(f"quantized_network_{engine}_trace", "trace", made, IMAGES, *SIZES)
    QUANTA[f"quantized_network_{engine}_trace"] = 2.02 * made.last.scale
made = converted(Network(), X)
case("quantized_network_script", "script", made, IMAGES, *SIZES)
QUANTA["quantized_network_script"] = 2.02 * made.last.scale


class Layers(nn.Module):
    """Convolutions of each number of dimensions, and a transposed one."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.vectors, self.images = nn.Conv1d(4, 6, 3, stride=2, padding=1), nn.Conv2d(1, 2, 3, bias=False)

    def forward(self, x):
        x = self.vectors(self.quant(x))
        return self.dequant(self.images(x.unsqueeze(1)).transpose(1, 2).contiguous())


case("quantized_conv1d_script", "script", converted(Layers(), torch.randn(2, 4, 9)), {"x": "float32[n,4,L]"},
     (torch.randn(2, 4, 9),), (torch.randn(1, 4, 12),))


class Plain(nn.Module):
    """Functions of quantised tensors."""

    def forward(self, x: Tensor):
        q = torch.quantize_per_tensor(x, 0.05, 100, torch.quint8)
        scales, zeros = torch.tensor([0.1, 0.2, 0.05, 0.03]), torch.tensor([10, 0, 100, 5])
        channels = torch.quantize_per_channel(x, scales, zeros, 1, torch.quint8)
        ints = torch.quantize_per_tensor(x, 0.02, -3, torch.qint8)
        dynamic = torch.quantize_per_tensor_dynamic(x, torch.quint8, True)
        parts = [torch.relu(q), torch.tanh(q), torch.sigmoid(q), channels, torch.clamp(q, -1.0, 1.0), dynamic, q[:, 1:3].flatten(1)]
        return [p.dequantize() for p in parts], ints.int_repr(), q.q_scale() + x, q.dtype == torch.quint8


case("quantized_functions", "script", Plain(), {"x": "float32[n,4,5]"}, (torch.randn(3, 4, 5),), (torch.randn(1, 4, 5),))


class Interface(nn.Module):
    """Takes and gives quantised tensors."""

    def __init__(self):
        super().__init__()
        self.conv = nn.quantized.Conv2d(2, 3, 2)
        weight = torch.quantize_per_tensor(torch.randn(3, 2, 2, 2), 0.05, 0, torch.qint8)
        self.conv.set_weight_bias(weight, torch.randn(3))
        self.conv.scale, self.conv.zero_point = 0.3, 90

    def forward(self, x: Tensor, pair: Tuple[Tensor, Tensor]):
        y = self.conv(x)
        total = torch.ops.quantized.add(pair[0], pair[1], 0.25, 3)
        channels = torch.quantize_per_channel(pair[1].dequantize(), torch.tensor([0.1, 0.2]), torch.tensor([4, 0]), 0, torch.qint8)
        large = F.interpolate(x, scale_factor=2.0, mode="nearest")
        return torch.relu(x), y, total, channels, large, x.transpose(1, 2).q_scale() + y.dequantize()


def quint8(*sizes, scale, zero_point):
    return torch.quantize_per_tensor(torch.randn(*sizes) * 2, scale, zero_point, torch.quint8)


PAIR = {"pair.0": "quint8[2,3]", "pair.1": "quint8[2,3]"}
for how in ("trace", "script"):
    made = Interface()
    case(f"quantized_interface_{how}", how, made, {"x": "quint8[n,2,4,5]", **PAIR},
         *(
             (quint8(n, 2, 4, 5, scale=0.11, zero_point=10), (quint8(2, 3, scale=0.2, zero_point=7), quint8(2, 3, scale=0.07, zero_point=99)))
             for n in (1, 3)
         ))
    QUANTA[f"quantized_interface_{how}"] = 1.01


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows, self.bags = nn.Embedding(10, 8), nn.EmbeddingBag(10, 8, mode="sum")
        self.rows.qconfig = quantization.float_qparams_weight_only_qconfig
        self.bags.qconfig = quantization.float_qparams_weight_only_qconfig_4bit

    def forward(self, x):
        return self.rows(x.flatten()), self.bags(x)


torch.manual_seed(1)
torch.backends.quantized.engine = "fbgemm"
case("quantized_embeddings", "trace", quantization.convert(quantization.prepare(Rows().eval())), {"x": "int64[3,4]"},
     (torch.randint(0, 10, (3, 4)),))


class Dynamic(nn.Module):
    """Layers that quantise their inputs by the range."""

    def __init__(self, half=False):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(6, 5)
        self.last = nn.Linear(5, 2)

    def forward(self, x: Tensor):
        x, (h, c) = self.lstm(x)
        x, last = self.gru(x)
        return self.last(x).relu(), h, c, last


LAYERS = {nn.LSTM, nn.GRU, nn.Linear}
STEPS = {"x": "float32[n,t,4]"}
TWO = (torch.randn(3, 5, 4),), (torch.randn(2, 7, 4),)
case("dynamic_layers_script", "script", quantization.quantize_dynamic(Dynamic().eval(), LAYERS), STEPS, *TWO)
case("half_layers_script", "script", quantization.quantize_dynamic(Dynamic().eval(), LAYERS, torch.float16), STEPS, *TWO)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTMCell(4, 3), nn.GRUCell(3, 3)

    def forward(self, x):
        return self.gru(self.lstm(x)[0])


case("dynamic_cells_trace", "trace", quantization.quantize_dynamic(Cells().eval(), {nn.LSTMCell, nn.GRUCell}),
     {"x": "float32[3,4]"}, (torch.randn(3, 4),))
