"""Runs models of pt2onnx and of torch.onnx.export side by side in ONNX Runtime: latency, and time and memory to load them.

    python bench/latency.py --bin target/release/pt2onnx --folder /tmp/latency

Needs torch, torchvision, transformers, onnxruntime. For every model, made here with random weights: torch.export.save
writes the archive, each exporter turns it into a model with external weights (the opset is torch.onnx.export's default), and two
sessions of one thread take turns: as ONNX Runtime optimises them, and unchanged (ORT_DISABLE_ALL). Each session is also made in
separate processes, which measure its time and their peak of memory. Printed are medians, the ratio of ours to theirs, the largest
difference of the outputs, and the models' nodes and bytes. The folder keeps archives and models, so that another run only measures.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy
import onnx
import onnxruntime
import torch

OPSET = 20
THREADS = 1


def resnet50():
    import torchvision

    return torchvision.models.resnet50(), (torch.randn(1, 3, 224, 224),)


def vit_b_16():
    import torchvision

    return torchvision.models.vit_b_16(), (torch.randn(1, 3, 224, 224),)


class Logits(torch.nn.Module):
    """A language model without caches: token ids to the first of its outputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(ids, use_cache=False)[0]


class Hidden(torch.nn.Module):
    """An encoder: token ids and mask to hidden states."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, mask):
        return self.model(ids, attention_mask=mask)[0]


def tokens(vocabulary, length=128):
    return torch.randint(0, vocabulary, (1, length))


def bert_base():
    from transformers import BertConfig, BertModel

    config = BertConfig()
    ids = tokens(config.vocab_size)
    return Hidden(BertModel(config)), (ids, torch.ones_like(ids))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config()
    return Logits(GPT2LMHeadModel(config)), (tokens(config.vocab_size),)


def large_llama():
    """The sizes of Llama 3.2 1B, in float16: 1.2e9 parameters."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=128256,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        tie_word_embeddings=True,
        dtype=torch.float16,
    )
    return Logits(LlamaForCausalLM(config).half()), (tokens(config.vocab_size, 8),)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=8000,
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
    )
    return Logits(LlamaForCausalLM(config)), (tokens(config.vocab_size),)


MODELS = {
    "ResNet-50": resnet50,
    "ViT-B/16": vit_b_16,
    "BERT-base": bert_base,
    "GPT-2": gpt2,
    "Llama, 8 layers of 512": llama,
    "Llama, 1.2e9 parameters of float16": large_llama,
}


def make(name, build, folder):
    """The archive, the inputs, and torch.onnx.export's model."""
    torch.manual_seed(0)
    archive, inputs, theirs = (folder / f for f in ("model.pt2", "inputs.npz", "theirs.onnx"))
    if not theirs.exists():
        folder.mkdir(parents=True, exist_ok=True)
        model, arguments = build()
        with torch.no_grad():
            program = torch.export.export(model.eval(), arguments)
        torch.export.save(program, archive)
        numpy.savez(inputs, *(a.numpy() for a in arguments))
        exported = torch.onnx.export(program, dynamo=True, opset_version=OPSET, verbose=False)
        exported.save(theirs, external_data=True)
    return archive, inputs, theirs


def session(path, plain=False):
    """A session; a plain one leaves the model as it is."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = THREADS
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


LOAD = """
import json, sys, time
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
start = time.perf_counter()
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
seconds = time.perf_counter() - start
# Unlike `ru_maxrss`, this peak is not that of the process around.
[peak] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")]
print(json.dumps([seconds, int(peak) * 1024 / 1e6]))
"""


def loads(paths, runs):
    """Median seconds and megabytes of each model's session, made in turns."""
    told = [[] for _ in paths]
    for _ in range(runs):
        for path, told_of in zip(paths, told):
            done = subprocess.run([sys.executable, "-c", LOAD, path], check=True, capture_output=True, text=True)
            told_of.append(json.loads(done.stdout))
    return [[statistics.median(column) for column in zip(*t)] for t in told]


def feeds(running, arrays):
    return {i.name: a for i, a in zip(running.get_inputs(), arrays, strict=True)}


def measure(paths, arrays, runs, plain=False):
    """Median seconds of each model, taken in turns, and how far the outputs are apart."""
    sessions = [session(path, plain) for path in paths]
    inputs = [feeds(s, arrays) for s in sessions]
    first = [s.run(None, i) for s, i in zip(sessions, inputs)]
    apart = max(float(numpy.abs(a - b).max()) for a, b in zip(*first, strict=True))
    times = [[], []]
    for _ in range(runs):
        for s, i, taken in zip(sessions, inputs, times):
            start = time.perf_counter()
            s.run(None, i)
            taken.append(time.perf_counter() - start)
    return [statistics.median(t) for t in times], apart


def size(path):
    """Nodes of the model (those of its functions and bodies too), and bytes with its data file."""
    model = onnx.load(path, load_external_data=False)
    data = path.with_name(path.name + ".data")
    weights = data.stat().st_size if data.exists() else 0

    def count(nodes):
        bodies = (a.g.node for n in nodes for a in n.attribute if a.type == onnx.AttributeProto.GRAPH)
        return len(nodes) + sum(map(count, bodies))

    nodes = count(model.graph.node) + sum(count(f.node) for f in model.functions)
    return nodes, path.stat().st_size + weights


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="target/release/pt2onnx")
    parser.add_argument("--options", default="", help="options for pt2onnx, such as '--target ort'")
    parser.add_argument("--folder", type=Path, required=True, help="where archives and models are kept")
    parser.add_argument("--models", help="only those whose names contain this")
    parser.add_argument("--runs", type=int, default=30)
    arguments = parser.parse_args()
    print("| model | latency | ratio | as it is | ratio | to load | ratio | peak MB | ratio | differ by | nodes | bytes |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, build in MODELS.items():
        if arguments.models and arguments.models.lower() not in name.lower():
            continue
        folder = arguments.folder / build.__name__
        archive, inputs, theirs = make(name, build, folder)
        ours = folder / "ours.onnx"
        command = [arguments.bin, archive, "-o", ours, "--opset", str(OPSET), "--weights", "external"]
        subprocess.run([*command, *arguments.options.split()], check=True)
        runs = arguments.runs if build is not large_llama else min(arguments.runs, 5)
        with numpy.load(inputs) as arrays:
            arrays = list(arrays.values())
        (a, b), apart = measure([ours, theirs], arrays, runs)
        (c, d), _ = measure([ours, theirs], arrays, runs, plain=True)
        (e, f), (g, h) = loads([ours, theirs], min(runs, 5))
        (na, ba), (nb, bb) = size(ours), size(theirs)
        pairs = [f"{a * 1e3:.1f} ms | {a / b:.2f}", f"{c * 1e3:.1f} ms | {c / d:.2f}", f"{e:.2f} s | {e / g:.2f}", f"{f:.0f} | {f / h:.2f}"]
        print(f"| {name} | {' | '.join(pairs)} | {apart:.1e} | {na} : {nb} | {ba / bb:.3f} |", flush=True)


if __name__ == "__main__":
    main()
