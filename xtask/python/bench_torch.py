"""The peer of `cargo xtask bench`: bench_torch.py ARCHIVE MODEL.onnx, from archive to model by torch.onnx.export."""

import sys

import torch

program = torch.export.load(sys.argv[1])
torch.onnx.export(program, (), sys.argv[2], dynamo=True, external_data=True, verbose=False)
