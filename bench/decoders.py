"""Decoders in ONNX Runtime: exported by pt2onnx for onnxruntime-genai, by onnxruntime-genai's builder, and by optimum.

    PYTHONPATH=python OMP_NUM_THREADS=1 python bench/decoders.py [--runs 40] [--layers 4] [NAME ...]

Needs torch, transformers, onnxruntime and onnxruntime-genai; optimum's column needs optimum-onnx in the folder that `--optimum` names.
Models have random weights, of two sizes each, in float32 and with weights of 4 bits. Sessions have one thread and take turns: a token
after so many others, and a prompt of so many tokens. All products with weights have 4 bits in both (`mixed=False`). Ours computes the logits
of a prompt's last token, the builder those of all, as both do by default; `--all-logits` makes ours do the same.

Sessions of one model differ, and later ones are faster: each tool has several, made by turns,
there and back. With `--itself`, the builder's model is measured as if it were that of two tools: how far
their ratio is from 1 is the noise of the row.
Printed are the medians of milliseconds of CPU of the median session, with the ratio of ours to the builder's, and the seconds of CPU
of the exports. A tool that does not export a model has no numbers in its rows.
"""

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy
import onnxruntime

VOCABULARY = 4000
#: Fields of configurations that differ from those of all, by architecture.
ARCHITECTURES = {
    "Llama": {},
    "Qwen3": {"head_dim": 64},
    "Gemma3": {"head_dim": 64, "sliding_window": 512, "query_pre_attn_scalar": 64},
    "Phi3": {"pad_token_id": 0},
}
CLASSES = {"Gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM")}
WIDTHS = (512, 1024)
#: The steps that run: the number of tokens before, and of the new ones.
STEPS = {"decode": ((16, 1), (512, 1), (2048, 1)), "prefill": ((0, 16), (0, 512), (0, 2048))}


#: Runs the builder, whose Gemma 3 reads the configuration as transformers 4 had it.
BUILDER = """
import runpy, transformers
read = transformers.AutoConfig.from_pretrained
def older(*args, **kwargs):
    config = read(*args, **kwargs)
    angles = getattr(config, "rope_parameters", None) or {}
    if "sliding_attention" in angles:
        config.rope_local_base_freq = angles["sliding_attention"]["rope_theta"]
        config.rope_parameters = angles["full_attention"]
    return config
transformers.AutoConfig.from_pretrained = older
runpy.run_module("onnxruntime_genai.models.builder", run_name="__main__")
"""


def saved_model(name, width, layers, folder):
    """Saves a model with its tokenizer, and returns it."""
    import torch
    import transformers

    torch.manual_seed(0)
    config, model = CLASSES.get(name, (f"{name}Config", f"{name}ForCausalLM"))
    sizes = {"hidden_size": width, "intermediate_size": 3 * width, "num_hidden_layers": layers}
    heads = {"num_attention_heads": width // 64, "num_key_value_heads": 2, "max_position_embeddings": 4096}
    tokens = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False}
    made = getattr(transformers, config)(**sizes, **heads, **tokens, **ARCHITECTURES[name])
    module = getattr(transformers, model)(made).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))
    module.save_pretrained(folder)
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {f"w{i}": i for i in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w3"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="w0", bos_token="w1", eos_token="w2").save_pretrained(folder)
    return module


def export(name, module, source, folder, quantize, given):
    """Exports by all, and returns the folders by tool, with the seconds of CPU."""
    import pt2onnx
    import torch

    found = {}
    start = time.process_time()
    options = {"quantize": "int4", "block_size": 32, "mixed": False} if quantize else {}
    options["all_logits"] = given.all_logits
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pt2onnx.hf.export(module, folder / "pt2onnx", target="ort-genai", verbose=False, **options)
    found["pt2onnx"] = (folder / "pt2onnx", time.process_time() - start)
    precision = "int4" if quantize else "fp32"
    builder = ["-c", BUILDER, "-i", source, "-o", folder / "builder", "-p", precision, "-e", "cpu"]
    others = {"builder": (builder, {})}
    if given.optimum and not quantize:
        task = ["--task", "text-generation-with-past"]
        words = ["-m", "optimum.exporters.onnx", "--model", source, *task, folder / "optimum"]
        others["optimum"] = (words, {"PYTHONPATH": given.optimum})
    for tool, (words, environment) in others.items():
        try:
            found[tool] = (folder / tool, seconds_of([sys.executable, *words], environment))
        except subprocess.CalledProcessError:
            print(f"{tool} does not export {name}", file=sys.stderr)
    if given.itself and "builder" in found:
        found["itself"] = found["builder"]
    return found


def seconds_of(command, environment):
    """The seconds of CPU of a command, whose output is shown if it fails."""
    before = os.times()
    done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    done.check_returncode()
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


class Decoder:
    """A session of one thread, whose past and present are one buffer if the model was written for that."""

    def __init__(self, folder, shared, config):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.shared = shared
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.cache = (1, config.num_key_value_heads, width)
        # The builder's caches of windows have at least their size.
        self.window = getattr(config, "sliding_window", None) or 0
        self.session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        self.inputs = [given.name for given in self.session.get_inputs()]

    def bound(self, past, new):
        """The binding of one run. Tensors live as long as the result."""
        binding = self.session.io_binding()
        held = []

        def bind(name, array):
            if name in self.inputs:
                # Its memory is aligned as that of onnxruntime-genai's caches.
                held.append(onnxruntime.OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype))
                held[-1].update_inplace(array)
                binding.bind_ortvalue_input(name, held[-1])

        numbers = numpy.random.default_rng(0)
        bind("input_ids", numbers.integers(3, VOCABULARY, (1, new)))
        bind("attention_mask", numpy.ones((1, past + new), numpy.int64))
        bind("position_ids", numpy.arange(past, past + new)[None])
        batch, heads, width = self.cache
        for name in self.inputs:
            if not name.startswith("past_key_values."):
                continue
            length = max(past + new, self.window) if self.shared else past
            bind(name, numbers.standard_normal((batch, heads, length, width), numpy.float32))
            present = name.replace("past_key_values", "present")
            if self.shared:
                binding.bind_ortvalue_output(present, held[-1])
            else:
                binding.bind_output(present)
        binding.bind_output("logits")
        return binding, held


def latencies(decoders, past, new, runs):
    """The milliseconds of CPU of the median session, by tool: those of a session are the median of its runs."""
    bound = [(tool, decoder.session, decoder.bound(past, new)) for tool, decoder in decoders]
    times = [[] for _ in decoders]
    for run in range(runs + 1):
        for (_, session, (binding, _)), found in zip(bound, times, strict=True):
            start = time.process_time()
            session.run_with_iobinding(binding)
            if run:
                found.append(1e3 * (time.process_time() - start))
    medians = {}
    for (tool, _), found in zip(decoders, times, strict=True):
        medians.setdefault(tool, []).append(statistics.median(found))
    return {tool: statistics.median(found) for tool, found in medians.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(ARCHITECTURES))
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--optimum")
    parser.add_argument("--all-logits", action="store_true")
    parser.add_argument("--itself", action="store_true", help="measure the builder's model beside itself, too")
    parser.add_argument("--sessions", type=int, default=4, help="sessions of each tool")
    given = parser.parse_args()
    columns = ("pt2onnx, ms", "builder, ms", "ratio", "builder to itself", "optimum, ms")
    print(f"| model | weights | tokens | {' | '.join(columns)} |\n| --- | --- | --- |{' ---: |' * len(columns)}")
    ratios, itself = [], []
    for name in given.names:
        for width in WIDTHS:
            with tempfile.TemporaryDirectory() as folder:
                module = saved_model(name, width, given.layers, Path(folder, "source"))
                for quantize in (False, True):
                    own, same = compared(name, width, module, Path(folder), quantize, given)
                    ratios += own
                    itself += same
    if ratios:
        print(f"\nRatio to the builder: median {statistics.median(ratios):.2f}, largest {max(ratios):.2f}.")
    if itself:
        print(f"\nBuilder to itself: from {min(itself):.2f} to {max(itself):.2f}.")


def compared(name, width, module, folder, quantize, given):
    """Prints the rows of a model, and returns the ratios of ours to the builder, and of the builder to itself."""
    weights = "int4" if quantize else "float32"
    (folder / weights).mkdir()
    found = export(name, module, folder / "source", folder / weights, quantize, given)
    tools = [tool for turn in range(given.sessions) for tool in list(found)[:: -1 if turn % 2 else 1]]
    decoders = [(tool, Decoder(found[tool][0], tool != "optimum", module.config)) for tool in tools]
    ratios, itself = [], []
    for kind, steps in STEPS.items():
        for past, new in steps:
            # Prompts of more tokens run fewer times.
            medians = latencies(decoders, past, new, max(3, given.runs * 16 // max(new, 16)))
            for tool, all_of in (("pt2onnx", ratios), ("itself", itself)):
                all_of += ratio_of(tool, medians)
            print_row(name, width, weights, f"{kind} {past or new}", medians)
    seconds = {tool: seconds for tool, (_, seconds) in found.items()}
    print_row(name, width, weights, "export, s", seconds, ratios=False)
    del decoders
    gc.collect()
    return ratios, itself


def ratio_of(tool, medians):
    """The ratio of a tool to the builder, if both export the model."""
    return [medians[tool] / medians["builder"]] if tool in medians and "builder" in medians else []


def print_row(name, width, weights, tokens, numbers, ratios=True):
    ours, builder, optimum = (f"{numbers[tool]:.2f}" if tool in numbers else "" for tool in ("pt2onnx", "builder", "optimum"))
    ratio, itself = ("".join(f"{r:.2f}" for r in ratio_of(tool, numbers) if ratios) for tool in ("pt2onnx", "itself"))
    print(f"| {name} {width} | {weights} | {tokens} | {ours} | {builder} | {ratio} | {itself} | {optimum} |", flush=True)


if __name__ == "__main__":
    main()
