#!/usr/bin/env python3
"""Makes the cases of torchao and PT2E (`torchao.quantization`): weights of int8, int4 and float8 by tensor, channel and block.

    venv/bin/pip install torchao
    venv/bin/python testdata/generate/quantized.py FOLDER
    venv/bin/python testdata/generate/make.py bundle FOLDER testdata/cases/quantized.tar.zst

torchao's weights are tensor subclasses, which archives hold as pickles; `unwrap_tensor_subclass` makes them plain.
"""
import sys

import make
import torch
import torchao.quantization as ao
from torch import nn
from torchao.quantization.granularity import PerAxis, PerGroup
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.qat import QATConfig
from torchao.testing.pt2e._xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
from torchao.utils import unwrap_tensor_subclass

CASES = {}


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.linear = nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return self.linear((x + x.flip(-1)).mean((2, 3)))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(128, 64)
        self.b = nn.Linear(64, 96)

    def forward(self, x):
        return self.b(nn.functional.gelu(self.a(x)))


def pt2e(name, quantum=0.0, **options):
    """ONNX Runtime sums integers, and may round to the other side: `quantum` is a step of the results."""
    def made():
        x = torch.randn(2, 3, 8, 8)
        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**options))
        prepared = prepare_pt2e(torch.export.export(Convolution().eval(), (x,)).module(), quantizer)
        for _ in range(3):
            prepared(torch.randn(2, 3, 8, 8))
        module = convert_pt2e(prepared)
        # Such a module has no modes.
        module.eval = lambda: module
        if quantum:
            module.about = {"atol": quantum}
        return module, (x,), None, None

    CASES[name] = made


def config(name, config, dynamic=True):
    def made():
        module = Perceptron().eval()
        ao.quantize_(module, config)
        batch = ({0: torch.export.Dim.AUTO},) if dynamic else None
        return unwrap_tensor_subclass(module), (torch.randn(4, 128),), batch, (torch.randn(7, 128),) if dynamic else None

    CASES[name] = made


pt2e("pt2e_tensor", quantum=0.003, is_per_channel=False)
pt2e("pt2e_channel", is_per_channel=True)
pt2e("pt2e_dynamic", is_per_channel=True, is_dynamic=True)
config("int8_channel", ao.Int8WeightOnlyConfig())
config("int8_dynamic", ao.Int8DynamicActivationInt8WeightConfig(), dynamic=False)
config("float8_channel", ao.Float8WeightOnlyConfig())
config("int4_block", ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)))
config("int4_channel", ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerAxis(0)))
blocks = ao.Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32))
config("int4_block_dynamic", blocks)
config("fake", QATConfig(blocks, step="prepare"))


if __name__ == "__main__":
    make.CASES = CASES
    make.make(sys.argv[1], sys.argv[2:] or list(CASES))
