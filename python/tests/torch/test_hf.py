"""Caches of transformers as inputs and outputs. Models are small and random; nothing is
downloaded."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("onnxruntime")

import pt2onnx  # noqa: E402
from helpers import since  # noqa: E402

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
CACHE = [f"{layer}.{tensor}" for layer in range(2) for tensor in ("key", "value")]
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def llama():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, vocab_size=100)).eval()


def cached(model, tokens):
    """A cache of so many tokens, of two rows."""
    with torch.no_grad():
        return model(input_ids=torch.zeros(2, tokens, dtype=torch.int64)).past_key_values


def shapes(program, inputs):
    ends = program._native.inputs() if inputs else program._native.outputs()
    return {name: dims for name, _, dims in ends}


def test_one_entry_for_all_tensors_of_a_cache(llama):
    program = pt2onnx.export(
        llama,
        kwargs={
            "input_ids": torch.ones(2, 3, dtype=torch.int64),
            "past_key_values": cached(llama, 4),
        },
        dynamic_shapes={
            "input_ids": {0: "batch", 1: "length"},
            "past_key_values": {0: "batch", 2: "past"},
        },
        verify=True,
    )
    past = {f"past_key_values.{name}": ["batch", "2", "past", "8"] for name in CACHE}
    assert shapes(program, True) == {"input_ids": ["batch", "length"], **past}
    present = {f"present.{name}": ["batch", "2", "past + length", "8"] for name in CACHE}
    found = shapes(program, False)
    assert found.keys() == {"logits", *present}
    assert set(found["present.0.key"][2].split(" + ")) == {"past", "length"}
    assert program.verification.ok
    # At the given sizes and at larger ones.
    assert len(program.verification.outputs) == 2 * len(found)


# Older versions do not record that the mask is as long as the past and the new tokens.
@since(2, 10)
def test_sizes_that_belong_together_grow_together(llama):
    part = pt2onnx.hf.generation_models(llama)["model"]
    program = pt2onnx.export(
        part.model, kwargs=part.kwargs, dynamic_shapes=part.dynamic_shapes, verify=True
    )
    # attention_mask has one row for each token of the past and of input_ids: this is compared at a
    # second size, too.
    assert {output.inputs == "given" for output in program.verification.outputs} == {True, False}
    assert program.verification.ok, str(program.verification)


def test_names_that_are_given_win(llama):
    names = (
        ["ids", *(f"in_{name}" for name in CACHE)],
        ["scores", *(f"out_{name}" for name in CACHE)],
    )
    program = pt2onnx.export(
        llama,
        kwargs={
            "input_ids": torch.ones(2, 3, dtype=torch.int64),
            "past_key_values": cached(llama, 4),
        },
        input_names=names[0],
        output_names=names[1],
    )
    assert (program.input_names, program.output_names) == names


def test_an_empty_cache_has_no_inputs(llama):
    program = pt2onnx.export(
        llama,
        kwargs={
            "input_ids": torch.ones(2, 3, dtype=torch.int64),
            "past_key_values": transformers.DynamicCache(config=llama.config),
        },
        dynamic_shapes={"input_ids": {1: "length"}, "past_key_values": None},
    )
    assert shapes(program, True) == {"input_ids": ["2", "length"]}
    assert shapes(program, False)["present.1.value"] == ["2", "2", "length", "8"]


def test_static_cache(llama):
    cache = transformers.StaticCache(config=llama.config, max_cache_len=16)
    with torch.no_grad():
        llama(input_ids=torch.zeros(2, 4, dtype=torch.int64), past_key_values=cache)
    program = pt2onnx.export(
        llama,
        kwargs={"input_ids": torch.ones(2, 3, dtype=torch.int64), "past_key_values": cache},
        dynamic_shapes={"input_ids": {0: "batch", 1: "length"}, "past_key_values": {0: "batch"}},
        verify=True,
    )
    assert shapes(program, True)["past_key_values.0.key"] == ["batch", "2", "16", "8"]
    assert shapes(program, False)["present.1.value"] == ["batch", "2", "16", "8"]
    assert program.verification.ok, str(program.verification)


def test_positional_caches_are_named_after_their_parameter(llama):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.llama = llama

        def forward(self, ids, cache):
            result = self.llama(input_ids=ids, past_key_values=cache)
            return result.logits, result.past_key_values

    program = pt2onnx.export(
        Model().eval(), (torch.ones(2, 3, dtype=torch.int64), cached(llama, 4))
    )
    assert program.input_names == ["ids", *(f"cache.{name}" for name in CACHE)]
    assert program.output_names == ["output_0", *(f"present.{name}" for name in CACHE)]


def test_a_cut_cache_is_refused():
    config = transformers.MistralConfig(**SIZES, vocab_size=100, sliding_window=4)
    model = transformers.MistralForCausalLM(config).eval()
    cache = cached(model, 6)
    with pytest.raises(ValueError, match="had 6 tokens and keeps 3 of them"):
        pt2onnx.export(
            model,
            kwargs={"input_ids": torch.ones(2, 3, dtype=torch.int64), "past_key_values": cache},
        )


def test_static_sliding_caches_are_refused():
    config = transformers.MistralConfig(**SIZES, vocab_size=100, sliding_window=4)
    model = transformers.MistralForCausalLM(config).eval()
    cache = transformers.StaticCache(config=config, max_cache_len=16)
    with pytest.raises(ValueError, match="give a DynamicCache"):
        pt2onnx.export(
            model,
            kwargs={"input_ids": torch.ones(2, 3, dtype=torch.int64), "past_key_values": cache},
        )


REGISTERED_BY_OTHERS = """
import torch, transformers, pt2onnx
from transformers.integrations.executorch import register_dynamic_cache_export_support
register_dynamic_cache_export_support()
sizes = dict(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, vocab_size=100,
)
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).eval()
part = pt2onnx.hf.generation_models(model)["model"]
options = {"kwargs": part.kwargs, "dynamic_shapes": part.dynamic_shapes}
program = pt2onnx.export(part.model, **options, verify=True)
assert program.verification.ok, program.verification
print(*sorted(program.input_names), *sorted(program.output_names))
config = transformers.MistralConfig(**sizes, sliding_window=8)
model = transformers.MistralForCausalLM(config).eval()
part = pt2onnx.hf.generation_models(model)["model"]
try:
    pt2onnx.export(part.model, kwargs=part.kwargs, dynamic_shapes=part.dynamic_shapes)
except ValueError as error:
    print(error)
"""


@since(2, 10)
def test_caches_that_transformers_registered():
    run = subprocess.run(
        [sys.executable, "-c", REGISTERED_BY_OTHERS], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    names, refused = run.stdout.strip().splitlines()
    past, present = (
        " ".join(f"{kind}.{name}" for name in CACHE) for kind in ("past_key_values", "present")
    )
    assert names == f"attention_mask input_ids {past} position_ids logits {present}"
    assert "call pt2onnx.hf.register() before" in refused


# torch.export of 2.6 cannot capture GPT-2 of this version of transformers.
@pytest.mark.parametrize(
    "model", ["llama", pytest.param("gpt2", marks=since(2, 8)), "qwen3", "mistral", "t5"]
)
def test_the_example_finds_the_tokens_of_transformers(model, capsys):
    spec = importlib.util.spec_from_file_location("generate", EXAMPLES / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    assert generate.main([model]) == 0, capsys.readouterr().out
