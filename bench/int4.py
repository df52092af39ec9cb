"""Measures weights of 4 bits by how far they move the logits of a language model.

    PYTHONPATH=python OMP_NUM_THREADS=1 python bench/int4.py [--steps 250]

Needs torch, transformers, onnx and onnxruntime. A small Llama learns the texts of this repository for two minutes, as random weights
have no large numbers. Its model of float32 is then quantised by pt2onnx and by ONNX Runtime's MatMulNBitsQuantizer, which
onnxruntime-genai's builder calls. Printed are bytes and the mean KL divergence of the next token's distribution from that of float32,
over texts that the model has not seen.
"""

import argparse
import contextlib
import io
import math
import os
import tempfile
import warnings
from pathlib import Path

import numpy

ROOT = Path(__file__).parent.parent
LENGTH = 128
SIZES = {
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
}
BLOCKS = (32, 128)


def texts():
    """The bytes of the repository's texts, in an order that does not depend on the machine."""
    import torch

    files = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("crates/*/src/*.rs")])
    return torch.tensor(list(b"".join(file.read_bytes() for file in files)))


def trained(tokens, steps):
    """A small Llama that has learned these tokens."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=256, max_position_embeddings=512, **SIZES)
    model = transformers.LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.05)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = (
                2e-3 * min(1, (step + 1) / 20) * (0.5 + 0.5 * math.cos(math.pi * step / steps))
            )
        starts = torch.randint(0, len(tokens) - LENGTH, (6,))
        batch = torch.stack([tokens[start : start + LENGTH] for start in starts])
        optimizer.zero_grad()
        model(input_ids=batch, labels=batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def exported(model, example, path):
    """Writes the model of float32 from tokens to logits."""
    import pt2onnx
    import torch

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids=input_ids, use_cache=False).logits

    pt2onnx.export(Logits().eval(), (example,), path, dynamic_shapes=({0: "batch", 1: "length"},))


def log_probabilities(path, tokens):
    """The logarithms of the distributions of next tokens."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    logits = session.run(None, {session.get_inputs()[0].name: tokens})[0].astype(numpy.float64)
    logits -= logits.max(-1, keepdims=True)
    return logits - numpy.log(numpy.exp(logits).sum(-1, keepdims=True))


def head_of(model):
    """The node that computes the logits."""
    return next(node for node in reversed(model.graph.node) if node.op_type in ("MatMul", "Gemm"))


def ways(path, samples):
    """Names of tools and options, and functions that write their models."""
    import onnx
    import pt2onnx
    from onnxruntime.quantization import matmul_nbits_quantizer as nbits

    def ours(block, **options):
        # The other tool quantises no tables.
        options = {"target": "ort", "compress_exclude": ["Gather"], "block_size": block, **options}
        return lambda out: pt2onnx.optimize(path, out, quantize="int4", weights="embed", **options)

    def theirs(algorithm=None, **options):
        def write(out):
            given = onnx.load(path)
            made = algorithm(given) if algorithm else None
            quantizer = nbits.MatMulNBitsQuantizer(given, algo_config=made, **options)
            with contextlib.redirect_stdout(io.StringIO()):
                quantizer.process()
            quantizer.model.save_model_to_file(out, False)

        return write

    def last(given):
        return nbits.KQuantWeightOnlyQuantConfig(
            customized_weight_config={head_of(given).name: {"bits": 8}}
        )

    for block in BLOCKS:
        text = f"blocks of {block}"
        yield f"ONNX Runtime, {text}", theirs(block_size=block, is_symmetric=True)
        yield f"pt2onnx, {text}", ours(block)
        yield f"ONNX Runtime, {text}, zero points", theirs(block_size=block, is_symmetric=False)
        yield f"pt2onnx, {text}, zero points", ours(block, zero_points=True)
    for block in BLOCKS:
        text = f"pt2onnx, blocks of {block}, samples"
        yield text, ours(block, calibration_data=[samples])
        yield f"{text}, mixed", ours(block, calibration_data=[samples], mixed=True)
    yield "ONNX Runtime, k_quant_last", theirs(last)
    yield "pt2onnx, blocks of 32, mixed", ours(32, mixed=True)
    yield "pt2onnx, blocks of 32, mixed, zero points", ours(32, mixed=True, zero_points=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=250)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tokens = texts()
    known = len(tokens) * 9 // 10
    model = trained(tokens[:known], options.steps)
    starts = numpy.linspace(known, len(tokens) - LENGTH - 1, 24).astype(int)
    unseen = numpy.stack([tokens[start : start + LENGTH].numpy() for start in starts])
    print("| quantised by | bytes | KL divergence |\n| --- | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "float32.onnx"), os.path.join(folder, "int4.onnx")
        exported(model, tokens[None, :LENGTH].repeat(2, 1), path)
        expected = log_probabilities(path, unseen)
        samples = os.path.join(folder, "samples.npz")
        seen = tokens[: 16 * LENGTH].reshape(16, 1, LENGTH).numpy()
        numpy.savez(samples, input_ids=seen)
        for name, write in ways(path, samples):
            write(out)
            moved = expected - log_probabilities(out, unseen)
            divergence = (numpy.exp(expected) * moved).sum(-1).mean()
            print(f"| {name} | {os.path.getsize(out)} | {divergence:.2e} |", flush=True)
            os.remove(out)


if __name__ == "__main__":
    main()
