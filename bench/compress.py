"""Compresses models with pt2onnx and with the usual tools: time, memory, size, differences of the outputs, latency.

    python bench/compress.py --bin target/release/pt2onnx --folder /tmp/compress

Needs torch, transformers, torchvision, onnxruntime, onnx_ir and what bench/compress.txt lists. Models are made here with random weights and
a fixed seed, written by torch.export.save and converted once. Each tool then compresses that ONNX model in a separate process; its peak
memory is what the kernel counted. The difference is the root of the mean square of what the outputs differ by, relative to that of the
outputs, for an input that is not among the samples of a calibration. Then come ways to calibrate, on a ResNet-18, and a small Llama that
decodes with a cache, token by token. Prints the tables of docs/benchmarks.md, which `cargo xtask bench compress` writes there.
"""

import argparse
import importlib.metadata
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy
import onnxruntime

#: The reader of samples that onnxruntime.quantization takes.
READER = """
import numpy
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, quantize_static
class Reader(CalibrationDataReader):
    def __init__(self, path):
        arrays = dict(numpy.load(path))
        self.samples = iter([dict(zip(arrays, sample)) for sample in zip(*arrays.values())])
    def get_next(self):
        return next(self.samples, None)
def quantise(method):
    quantize_static(sys.argv[1], sys.argv[2], Reader(sys.argv[3]), per_channel=True, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, calibrate_method=method)
"""

#: The tools that pt2onnx is compared with, as programs: the model, the output and the samples are arguments.
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
    "onnxconverter-common float16": """
import onnx
from onnxconverter_common import float16
onnx.save(float16.convert_float_to_float16(onnx.load(sys.argv[1]), keep_io_types=True), sys.argv[2])
""",
    **{f"onnxruntime quantize_static{tail}": READER + f"quantise(CalibrationMethod.{method})" for method, tail in
       [("MinMax", ""), ("Percentile", ", Percentile"), ("Entropy", ", Entropy")]},
}

#: Flags of pt2onnx, and the tools that do the same.
OWN = {
    "--cast-weights float16": [],
    "--quantize int8": [],
    "--quantize int8 --block-size 32": [],
    "--quantize int4 --block-size 32": [],
    "--quantize float8": [],
    "--quantize dynamic-int8": [],
    "--quantize dynamic-int8 --signed": ["onnxruntime quantize_dynamic"],
    "--quantize static-int8": [],
    "--quantize static-int8 --signed": ["onnxruntime quantize_static"],
    "--quantize int4 --block-size 32 --target ort": ["onnxruntime matmul_nbits_quantizer"],
    "--quantize int4 --block-size 32 --target ort --accuracy-level 4": [],
    "--precision float16": ["onnxruntime.transformers float16", "onnxconverter-common float16"],
}

#: Ways to calibrate, and the tool that does the same.
CALIBRATING = {
    "--quantize static-int8": [],
    "--quantize static-int8 --signed": ["onnxruntime quantize_static"],
    "--quantize static-int8 --signed --calibration-method percentile": ["onnxruntime quantize_static, Percentile"],
    "--quantize static-int8 --signed --calibration-method entropy": ["onnxruntime quantize_static, Entropy"],
}

#: Flags for the Llama.
DECODING = {
    "--cast-weights float16": [],
    "--quantize int8": [],
    "--quantize dynamic-int8": [],
    "--quantize dynamic-int8 --signed": ["onnxruntime quantize_dynamic"],
    "--quantize int4 --block-size 32 --target ort": ["onnxruntime matmul_nbits_quantizer"],
    "--quantize int4 --block-size 32 --target ort --accuracy-level 4": [],
}

#: Samples that a calibration sees. The outputs are compared on one more.
SAMPLES = 4

OPSET = 21


def seeded(config, kind):
    """A model of transformers with random weights, which returns its first output."""
    import torch

    class First(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            return self.model(x)[0]

    torch.manual_seed(0)
    config.use_cache = False
    return First(kind(config)).eval()


def inputs(*sizes, ids=False):
    """The inputs of a model: the samples, and the one to compare with."""
    import torch

    generator = torch.Generator().manual_seed(1)
    sizes = (SAMPLES + 1, *sizes)
    return torch.randint(0, 30000, sizes, generator=generator) if ids else torch.randn(sizes, generator=generator)


def models(layers):
    """Name, model and inputs of each model."""
    import transformers

    gpt2 = transformers.GPT2Config(n_layer=layers)
    bert = transformers.BertConfig(num_hidden_layers=layers)
    vit = transformers.ViTConfig(num_hidden_layers=layers)
    yield "GPT-2", seeded(gpt2, transformers.GPT2LMHeadModel), inputs(1, 64, ids=True)
    yield "BERT", seeded(bert, transformers.BertModel), inputs(1, 64, ids=True)
    yield "ViT", seeded(vit, transformers.ViTModel), inputs(1, 3, 224, 224)


def resnet():
    """Name, model and inputs of a convolutional network."""
    import torch
    import torchvision

    torch.manual_seed(0)
    yield "ResNet-18", torchvision.models.resnet18(weights=None).eval(), inputs(1, 3, 224, 224)


#: Runs a command and prints its seconds and its peak memory, to which a small process that starts it adds nothing.
MEASURE = """
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - start, usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def measured(command):
    """Seconds and peak bytes of a process; None if it fails."""
    done = subprocess.run([sys.executable, "-S", "-c", MEASURE, *command], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{command}: {done.stderr[-600:]}", file=sys.stderr)
        return None
    seconds, peak = done.stdout.split()
    return float(seconds), int(peak)


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


def llama(folder):
    """The archive of a Llama of 8 layers that takes one token and its cache."""
    import torch
    import transformers

    archive = folder / "llama.pt2"
    if archive.exists():
        return archive
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4, vocab_size=16000
    )
    model = transformers.LlamaForCausalLM(config).eval()

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, token, place, past):
            cache = transformers.DynamicCache()
            for i in range(config.num_hidden_layers):
                cache.update(past[2 * i], past[2 * i + 1], i)
            made = self.model(input_ids=token, position_ids=place, past_key_values=cache, use_cache=True)
            present = [t for layer in made.past_key_values.layers for t in (layer.keys, layer.values)]
            return made.logits, torch.stack(present)

    past = torch.randn(16, 1, 4, 8, 64)
    sizes = {3: torch.export.Dim("length", min=1, max=4096)}
    args = (torch.tensor([[1]]), torch.tensor([[8]]), past)
    program = torch.export.export(Step().eval(), args, dynamic_shapes=(None, None, sizes), strict=False)
    torch.export.save(program, archive)
    return archive


def decode(path, threads, tokens):
    """Tokens per second, and the tokens that the model chooses."""
    loaded, chosen = session(str(path), threads), []
    token, past = numpy.array([[1]]), numpy.random.default_rng(0).standard_normal((16, 1, 4, 1, 64)).astype("f4")
    names = [given.name for given in loaded.get_inputs()]
    start = time.perf_counter()
    for place in range(1, tokens + 1):
        feeds = dict(zip(names, [token, numpy.array([[place]]), past]))
        logits, past = loaded.run(None, feeds)
        token = logits[:, -1:].argmax(-1)
        chosen.append(int(token[0, 0]))
    return tokens / (time.perf_counter() - start), chosen


def decoding(options):
    """The table of the Llama."""
    base, output = options.folder / "llama.onnx", options.folder / "out.onnx"
    subprocess.run([options.bin, llama(options.folder), "-o", base, "--quiet", "--opset", str(OPSET)], check=True)
    print("\n| Llama, 8 layers of 1024 | size | tokens in a second | of 64 tokens, those chosen alike before the first other one |")
    print("| --- | ---: | ---: | ---: |")
    speed, wanted = decode(base, options.threads, 64)
    print(f"| none | 1 | {speed:.1f} | |", flush=True)
    for tool, command in commands(DECODING, options, base, output, ""):
        if measured(command) is None:
            print(f"| {tool} | fails | | |", flush=True)
            continue
        speed, chosen = decode(output, options.threads, 64)
        alike = next((i for i, pair in enumerate(zip(wanted, chosen)) if pair[0] != pair[1]), 64)
        print(f"| {tool} | {size(output) / size(base):.3f} | {speed:.1f} | {alike} |", flush=True)


def size(path):
    data = Path(f"{path}.data")
    return path.stat().st_size + (data.stat().st_size if data.exists() else 0)


def commands(ways, options, base, output, samples):
    """Names and commands to run: ours, then those of others that do the same."""
    for flags, peers in ways.items():
        for old in output.parent.glob(output.name + "*"):
            old.unlink()
        calibrate = ["--calibration-data", samples] if "static" in flags else []
        yield f"`{flags}`", [options.bin, "optimize", base, "-o", output, *flags.split(), *calibrate]
        for peer in peers:
            for old in output.parent.glob(output.name + "*"):
                old.unlink()
            yield peer, [sys.executable, "-c", "import sys\n" + PEERS[peer], str(base), str(output), str(samples)]


def row(name, tool, command, model, output, feed, wanted, options):
    """Prints a row of the table."""
    cost = measured(command)
    if cost is None:
        print(f"| {name} | {tool} | fails | | | | |", flush=True)
        return
    try:
        got, latency = run(str(output), feed, options.threads, options.runs)
    except Exception as error:  # whatever ONNX Runtime says
        print(f"{tool}: {str(error)[:300]}", file=sys.stderr)
        print(f"| {name} | {tool} | {cost[0]:.2f} | {cost[1] / 1e6:.0f} | its model does not run | | |", flush=True)
        return
    error = numpy.sqrt(numpy.mean((got - wanted) ** 2) / numpy.mean(wanted**2))
    share = size(output) / size(model)
    cells = f"{cost[0]:.2f} | {cost[1] / 1e6:.0f} | {share:.3f} | {error:.2g} | {latency * 1e3:.1f}"
    print(f"| {name} | {tool} | {cells} |", flush=True)


def table(found, ways, options):
    """The table of some models and ways to compress them."""
    import torch

    print("\n| model | tool | seconds | peak MB | size | difference | latency in ms |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    output = options.folder / "out.onnx"
    for name, model, given in found:
        archive, base = options.folder / f"{name}, {options.layers} layers.pt2", options.folder / f"{name}.onnx"
        if not archive.exists():
            torch.export.save(torch.export.export(model, (given[-1],), strict=False), archive)
        subprocess.run([options.bin, archive, "-o", base, "--quiet", "--opset", str(OPSET)], check=True)
        given = given.numpy()
        wanted, latency = run(str(base), given[-1], options.threads, options.runs)
        print(f"| {name} | none | | | 1 | 0 | {latency * 1e3:.1f} |", flush=True)
        samples = options.folder / f"{name}.npz"
        numpy.savez(samples, **{session(str(base), 1).get_inputs()[0].name: given[:-1]})
        for tool, command in commands(ways, options, base, output, samples):
            row(name, tool, command, base, output, given[-1], wanted, options)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    # Both calibrate in the same ONNX Runtime.
    for library in (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.*"):
        os.environ.setdefault("ORT_DYLIB_PATH", str(library))
    packages = ["torch", "transformers", "onnx", "onnxruntime", "onnxconverter-common"]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    print(f"Models of {options.layers} layers; latency is the median of {options.runs} runs in {options.threads} thread; {versions}.")
    table(models(options.layers), OWN, options)
    table(resnet(), CALIBRATING, options)
    decoding(options)


if __name__ == "__main__":
    main()
