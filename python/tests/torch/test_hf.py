"""Caches of transformers as inputs and outputs. Models are small and random; nothing is
downloaded."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
onnxruntime = pytest.importorskip("onnxruntime")
numpy = pytest.importorskip("numpy")

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


@pytest.fixture(scope="module")
def noisy():
    """A model whose norms have scales other than 1."""
    torch.manual_seed(1)
    config = transformers.LlamaConfig(**SIZES, vocab_size=100)
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def run(session, feed, cache):
    """The results of a model by name; the cache is numbers or None for an empty one."""
    shapes = {given.name: given.shape for given in session.get_inputs()}
    past = cache or {
        name: numpy.zeros((len(feed["input_ids"]), shape[1], 0, shape[3]), numpy.float32)
        for name, shape in shapes.items()
        if name.startswith("past")
    }
    given = {name: value for name, value in feed.items() if name in shapes}
    names = [result.name for result in session.get_outputs()]
    return dict(zip(names, session.run(names, {**given, **past}), strict=True))


def as_past(results):
    return {
        name.replace("present", "past_key_values"): value
        for name, value in results.items()
        if name.startswith("present")
    }


#: Rows of tokens, and those that are there: on the left, all, and on the right.
IDS = numpy.array([[5, 6, 7, 8, 9], [11, 12, 13, 14, 15]])
MASKS = {
    "left": numpy.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]),
    "none": numpy.ones((2, 5), numpy.int64),
    "right": numpy.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
}


@pytest.mark.parametrize(
    ("target", "padding", "opset"),
    [
        *(("ort", padding, 24) for padding in MASKS),
        ("ort", "left", 21),
        ("ort-genai", "none", 24),
        ("ort-genai", "right", 24),
        ("ort-genai", "right", 21),
    ],
)
def test_operators_of_onnxruntime_give_the_logits(noisy, tmp_path, target, padding, opset):
    options = {"target": target, "opset_version": opset, "all_logits": padding == "none"}
    made = pt2onnx.hf.export(noisy, tmp_path, **options, verbose=False)
    operators = made["model"].report["model"]["operators"]
    assert operators["com.microsoft::SkipSimplifiedLayerNormalization"] == 4, operators
    assert operators.get("com.microsoft::GroupQueryAttention", 0) == (
        2 if target == "ort-genai" else 0
    )
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    mask, past, caches = MASKS[padding], None, None
    ids, lengths = IDS, mask.sum(1)
    for step in range(3):
        positions = numpy.maximum(mask.cumsum(1) - 1, 0)[:, -ids.shape[1] :]
        if padding == "right" and step:
            positions = (lengths + step - 1)[:, None]
        feed = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        found = run(session, feed, past)
        if target == "ort-genai" and padding == "right":
            # The rows of the cache have no gaps: each row is as if it were alone.
            for row, length in enumerate(lengths):
                own = numpy.concatenate([IDS[row, :length], *tokens_of(row, step)])
                with torch.no_grad():
                    expected = noisy(torch.tensor(own[None])).logits[0, -1]
                got = torch.tensor(found["logits"][row])
                assert got.shape[0] == 1
                torch.testing.assert_close(got[0], expected, rtol=1e-4, atol=1e-5)
        else:
            given = {name: torch.tensor(value) for name, value in feed.items()}
            with torch.no_grad():
                expected = noisy(**given, past_key_values=caches, use_cache=True)
            caches = expected.past_key_values
            there = torch.tensor(mask[:, -ids.shape[1] :] != 0)
            got = torch.tensor(found["logits"])
            torch.testing.assert_close(got[there], expected.logits[there], rtol=1e-4, atol=1e-5)
        past = as_past(found)
        ids = numpy.array([[20 + step], [30 + step]])
        if padding == "right" and target == "ort-genai":
            longest = int(lengths.max()) + step + 1
            mask = (numpy.arange(longest) <= (lengths + step)[:, None]).astype(numpy.int64)
        else:
            mask = numpy.concatenate([mask, numpy.ones((2, 1), numpy.int64)], 1)


def test_sinks_are_an_input_of_the_operator(tmp_path):
    torch.manual_seed(1)
    sizes = {**SIZES, "vocab_size": 100, "head_dim": 8, "sliding_window": 8}
    config = transformers.GptOssConfig(**sizes, num_local_experts=2, num_experts_per_tok=1)
    model = transformers.GptOssForCausalLM(config).eval()
    made = pt2onnx.hf.export(model, tmp_path, target="ort-genai", verbose=False)
    operators = made["model"].report["model"]["operators"]
    assert operators["com.microsoft::GroupQueryAttention"] == 2, operators
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    mask = MASKS["right"]
    positions = numpy.maximum(mask.cumsum(1) - 1, 0)
    feed = {"input_ids": IDS, "attention_mask": mask, "position_ids": positions}
    found = run(session, feed, None)["logits"]
    for row, length in enumerate(mask.sum(1)):
        with torch.no_grad():
            expected = model(torch.tensor(IDS[row : row + 1, :length])).logits[0, -1]
        got = torch.tensor(found[row, 0])
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def tokens_of(row, steps):
    """The tokens that a row got in the steps before."""
    return [numpy.array([(20, 30)[row] + step]) for step in range(steps)]


def test_genai_config(noisy, tmp_path):
    pt2onnx.hf.export(noisy, tmp_path, target="ort-genai", verbose=False)
    config = json.loads((tmp_path / "genai_config.json").read_text())
    decoder = config["model"]["decoder"]
    assert config["search"]["past_present_share_buffer"]
    assert (decoder["num_hidden_layers"], decoder["num_key_value_heads"]) == (2, 2)
    assert decoder["head_size"] == 8
    assert config["model"]["context_length"] == 2048
    assert sorted(decoder["inputs"]) == [
        "attention_mask",
        "input_ids",
        "past_key_names",
        "past_value_names",
        "position_ids",
    ]
    assert (tmp_path / "generation_config.json").exists()
    assert not list(tmp_path.glob("*.tmp"))


def test_genai_refuses_an_encoder(tmp_path):
    config = transformers.T5Config(d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=4)
    model = transformers.T5ForConditionalGeneration(config).eval()
    with pytest.raises(ValueError, match="the target 'ort-genai' is for decoders"):
        pt2onnx.hf.export(model, tmp_path / "out", target="ort-genai")
    assert not (tmp_path / "out").exists()


def test_embedded_weights_have_no_file(llama, tmp_path):
    pt2onnx.hf.export(llama, tmp_path, weights="embed", verbose=False)
    assert not list(tmp_path.glob("*.data"))


def test_a_loop_that_writes_a_part_of_a_tensor_is_refused() -> None:
    from pt2onnx.hf import _loops

    with pytest.raises(NotImplementedError, match="writes 2 of 3 rows"):
        _loops._placed(torch.zeros(2, 4), (torch.zeros(4, 3), (slice(None), _loops.index)))
