"""Compresses models with pt2onnx and with the usual tools: time, memory, size, differences of the outputs, latency.

    python bench/compress.py --bin target/release/pt2onnx --folder /tmp/compress

Needs torch, transformers, onnxruntime, onnx_ir. Models are made here with random weights and a fixed seed, written by torch.export.save and
converted once. Each tool then compresses that ONNX model in a process of its own; its peak memory is what the kernel counted. The
difference is the root of the mean square of what the outputs differ by, relative to that of the outputs. Prints the tables of
docs/benchmarks.md.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy
import onnxruntime

#: The tools that pt2onnx is compared with, as programs: the model and the output are arguments.
PEERS = {
    "onnxruntime quantize_dynamic": """
from onnxruntime.quantization import QuantType, quantize_dynamic
quantize_dynamic(sys.argv[1], sys.argv[2], weight_type=QuantType.QInt8, per_channel=True, use_external_data_format=False)
""",
    "onnxruntime matmul_nbits_quantizer": """
import onnx
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
config = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=True)
quantizer = MatMulNBitsQuantizer(onnx.load(sys.argv[1]), algo_config=config)
quantizer.process()
quantizer.model.save_model_to_file(sys.argv[2])
""",
    "onnxruntime.transformers float16": """
import onnx
from onnxruntime.transformers.float16 import convert_float_to_float16
onnx.save(convert_float_to_float16(onnx.load(sys.argv[1]), keep_io_types=True), sys.argv[2])
""",
}

#: What pt2onnx does, and the tool that does the same.
OWN = {
    "--cast-weights float16": None,
    "--quantize int8": None,
    "--quantize int8 --block 32": None,
    "--quantize int4 --block 32": None,
    "--quantize float8": None,
    "--quantize dynamic-int8": "onnxruntime quantize_dynamic",
    "--quantize int4 --block 32 --target ort": "onnxruntime matmul_nbits_quantizer",
    "--quantize int4 --block 32 --target ort --accuracy-level 4": None,
    "--precision float16": "onnxruntime.transformers float16",
}

OPSET = 21


def models(layers):
    """Name, model and inputs of each model."""
    import torch
    import transformers

    class Logits(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x)[0]

    def seeded(config, kind):
        torch.manual_seed(0)
        config.use_cache = False
        return Logits(kind(config)).eval()

    ids = torch.randint(0, 30000, (1, 64), generator=torch.Generator().manual_seed(1))
    image = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    gpt2 = transformers.GPT2Config(n_layer=layers)
    bert = transformers.BertConfig(num_hidden_layers=layers)
    vit = transformers.ViTConfig(num_hidden_layers=layers)
    yield "GPT-2", seeded(gpt2, transformers.GPT2LMHeadModel), ids
    yield "BERT", seeded(bert, transformers.BertModel), ids
    yield "ViT", seeded(vit, transformers.ViTModel), image


def measured(command):
    """Seconds and peak bytes of a process; None if it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        print(f"{command}: {said.decode()[-600:]}", file=sys.stderr)
        return None
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run(path, feed, threads, times):
    """The first output, and the median time of a run."""
    loaded = session(path, threads)
    feeds = {loaded.get_inputs()[0].name: feed}
    output, taken = loaded.run(None, feeds)[0], []
    for _ in range(times):
        start = time.perf_counter()
        loaded.run(None, feeds)
        taken.append(time.perf_counter() - start)
    return output.astype(numpy.float64), statistics.median(taken)


def size(path):
    data = Path(f"{path}.data")
    return path.stat().st_size + (data.stat().st_size if data.exists() else 0)


def row(name, tool, command, model, output, feed, wanted, options):
    """Prints a row of the table."""
    for old in output.parent.glob(output.name + "*"):
        old.unlink()
    cost = measured(command)
    if cost is None:
        print(f"| {name} | {tool} | fails | | | | |", flush=True)
        return
    got, latency = run(str(output), feed, options.threads, options.runs)
    error = numpy.sqrt(numpy.mean((got - wanted) ** 2) / numpy.mean(wanted**2))
    share = size(output) / size(model)
    cells = f"{cost[0]:.2f} | {cost[1] / 1e6:.0f} | {share:.3f} | {error:.2g} | {latency * 1e3:.1f}"
    print(f"| {name} | {tool} | {cells} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print("| model | tool | seconds | peak MB | size | difference | latency in ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    import torch

    for name, model, feed in models(options.layers):
        archive, base = options.folder / f"{name}.pt2", options.folder / f"{name}.onnx"
        if not archive.exists():
            torch.export.save(torch.export.export(model, (feed,), strict=False), archive)
        opset = ["--opset", str(OPSET)]
        subprocess.run([options.bin, archive, "-o", base, "--quiet", *opset], check=True)
        feed = feed.numpy()
        wanted, latency = run(str(base), feed, options.threads, options.runs)
        print(f"| {name} | none | | | 1 | 0 | {latency * 1e3:.1f} |", flush=True)
        output = options.folder / "out.onnx"
        for flags, peer in OWN.items():
            command = [options.bin, "optimize", base, "-o", output, *flags.split()]
            row(name, f"`{flags}`", command, base, output, feed, wanted, options)
            if peer:
                program = "import sys\n" + PEERS[peer]
                command = [sys.executable, "-c", program, str(base), str(output)]
                row(name, peer, command, base, output, feed, wanted, options)


if __name__ == "__main__":
    main()
