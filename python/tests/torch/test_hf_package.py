"""Folders of models of transformers: their files, and the tokens that they generate."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
onnxruntime = pytest.importorskip("onnxruntime")
numpy = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")

import hf_models  # noqa: E402
import pt2onnx  # noqa: E402
from pt2onnx.hf import _inputs, _runner  # noqa: E402
from pt2onnx.hf.__main__ import main  # noqa: E402
from test_hf_tasks import made  # noqa: E402

STEPS = 6
LLAMA = (
    "LlamaForCausalLM",
    "LlamaConfig",
    {
        "vocab_size": 99,
        "hidden_size": 32,
        "intermediate_size": 37,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "eos_token_id": 2,
    },
)
XGLM = (
    "XGLMForCausalLM",
    "XGLMConfig",
    {
        "vocab_size": 99,
        "d_model": 32,
        "ffn_dim": 37,
        "num_layers": 1,
        "attention_heads": 4,
        "max_position_embeddings": 64,
        "eos_token_id": 2,
    },
)
T5 = hf_models.GENERATORS[0]
HALVES = ("decoder", "encoder")


def generator(row):
    """A model that does not end."""
    model = made(*row[:3])
    model.generation_config.eos_token_id = None
    model.generation_config.forced_eos_token_id = None
    return model


def inputs_of(model, both):
    """The main input of two rows, padded on the side that the model takes."""
    name = model.main_input_name
    if name != "input_ids":
        return {name: _inputs.Examples(model).make((name,))[name].value}
    ids = torch.randint(3, 99, (2, 5), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    hidden = slice(3, None) if both else slice(None, 2)
    ids[1, hidden], mask[1, hidden] = 0, 0
    return {"input_ids": ids, "attention_mask": mask}


def assert_tokens(model, folder):
    """Compares the tokens of a folder with those of its model."""
    both = model.config.is_encoder_decoder
    inputs = inputs_of(model, both)
    options = {"do_sample": False, "max_new_tokens": STEPS, "min_new_tokens": STEPS}
    with torch.no_grad():
        expected = model.generate(**inputs, **options)[:, -STEPS:]
    runner = _runner.Runner(str(folder), _runner.Settings.of(model))
    found = runner.greedy({name: value.numpy() for name, value in inputs.items()}, STEPS)
    numpy.testing.assert_array_equal(found, expected.numpy())


@pytest.mark.parametrize("target", ["standard", "ort-genai"])
def test_masks_are_as_long_as_the_text_and_its_past(target, tmp_path, recwarn):
    """Which the code asks for."""
    program = pt2onnx.hf.export(generator(LLAMA), tmp_path, target=target, verbose=False)["model"]
    shapes = {
        value.name: [str(size) for size in value.shape] for value in program.model.graph.inputs
    }
    assert shapes["attention_mask"] == ["batch_size", "past_sequence_length + sequence_length"]
    assert not [one for one in recwarn if isinstance(one.message, pt2onnx.OnnxExporterWarning)]


def test_a_traced_decoder_has_its_names(tmp_path):
    """The lengths that its table of positions allows are too few for torch.export."""
    model = generator(XGLM)
    program = pt2onnx.hf.export(model, tmp_path, verbose=False)["model"]
    assert program.output_names == ["logits", "present.0.key", "present.0.value"]
    assert_tokens(model, tmp_path)


def test_a_folder_for_genai_gives_the_tokens(tmp_path):
    """Its rows are not filled on the left."""
    options = {"target": "ort-genai", "verify": True, "verbose": False}
    program = pt2onnx.hf.export(generator(LLAMA), tmp_path, **options)["model"]
    assert str(program.model.graph.outputs[0].shape[1]) == "1"


@pytest.mark.parametrize("row", hf_models.STATEFUL, ids=lambda row: row[0])
def test_states_are_inputs_and_outputs(row, tmp_path):
    model = generator(row)
    program = pt2onnx.hf.export(model, tmp_path, verbose=False)["model"]
    assert set(row[3]) <= set(program.input_names), program.input_names
    assert_tokens(model, tmp_path)


@pytest.mark.parametrize("row", hf_models.GENERATORS, ids=lambda row: row[0])
def test_decoders_apart_and_in_one_file(row, tmp_path):
    model = generator(row)
    options = {"merge_decoders": True, "verify": True, "verbose": False}
    programs = pt2onnx.hf.export(model, tmp_path, **options)
    names = ["encoder_model", "decoder_model", "decoder_with_past_model", "decoder_model_merged"]
    assert list(programs) == names
    merged = programs["decoder_model_merged"]
    assert "use_cache_branch" in merged.input_names
    assert "present.0.encoder.value" in merged.output_names
    # Optimum takes them layer by layer.
    layers = range(1 + max(int(one.split(".")[1]) for one in merged.input_names if "." in one))
    parts = [f"{n}.{half}.{kind}" for n in layers for half in HALVES for kind in ("key", "value")]
    for start, found in (("past", merged.input_names), ("present", merged.output_names)):
        ends = [one.partition(".")[2] for one in found if one.startswith(start)]
        assert ends == parts, found
    assert_tokens(model, tmp_path)
    (tmp_path / "decoder_model_merged.onnx").unlink()
    assert_tokens(model, tmp_path)


def test_other_tokens_are_an_error(tmp_path, monkeypatch):
    model = generator(LLAMA)
    greedy = _runner.Runner.greedy
    monkeypatch.setattr(_runner.Runner, "greedy", lambda *given: greedy(*given) + 1)
    with pytest.raises(pt2onnx.OnnxExporterError, match="generate other tokens than the model"):
        pt2onnx.hf.export(model, tmp_path / "out", verify=True, verbose=False)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def source(tmp_path):
    """A folder of save_pretrained with a tokenizer of words."""
    tokenizers = pytest.importorskip("tokenizers")
    words = {"<pad>": 0, "<s>": 1, "</s>": 2, **{f"w{i}": i for i in range(3, 99)}}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )
    folder = tmp_path / "source"
    generator(LLAMA).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def test_the_command_exports_a_folder_and_continues_a_text(source, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([str(source), str(out), "--verify"]) == 0
    files = {path.name for path in out.iterdir()}
    assert {"model.onnx", "config.json", "generation_config.json", "tokenizer.json"} <= files
    assert main(["generate", str(out), "w5 w6 w7", "--max-new-tokens", "4"]) == 0
    printed = capsys.readouterr().out
    assert "4 tokens, " in printed and printed.count("w") >= 3, printed


def test_the_command_names_what_is_missing(source, tmp_path, capsys):
    assert main([str(tmp_path), str(tmp_path / "out")]) == 1
    assert "has no config.json" in capsys.readouterr().err
    assert main(["generate", str(tmp_path), "text"]) == 1
    assert "has no model that generates text" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    for words, text in (
        ([str(source), str(tmp_path / "file")], "is a file"),
        ([str(source), str(tmp_path / "out"), "--task", "cook"], "there is no task 'cook'"),
        ([str(source), str(tmp_path / "out"), "--task", "fill-mask"], "does not have the task"),
    ):
        assert main(words) == 1
        printed = capsys.readouterr().err
        assert text in printed and "Loading weights" not in printed
    assert not (tmp_path / "out").exists()
    (source / "tokenizer.json").unlink()
    (source / "tokenizer_config.json").unlink()
    assert main([str(source), str(tmp_path / "out")]) == 0
    assert main(["generate", str(tmp_path / "out"), "w5"]) == 1
    assert "has no tokenizer: export from a folder that has one" in capsys.readouterr().err


def test_weights_of_4_bits_need_no_further_options(source, tmp_path):
    pt2onnx.hf.export(source, tmp_path / "out", quantize="int4", verbose=False)
    model = onnx.load(tmp_path / "out" / "model.onnx")
    assert [one.version for one in model.opset_import if not one.domain] == [21]
    restoring = [node for node in model.graph.node if node.op_type == "DequantizeLinear"]
    blocks = {one.i for node in restoring for one in node.attribute if one.name == "block_size"}
    assert blocks == {32}


def test_a_text_makes_weights_of_4_bits_harm_less(source, tmp_path):
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    model = generator((*LLAMA[:2], {**LLAMA[2], "hidden_size": 64, "intermediate_size": 96}))
    # The inputs of its layers have few causes.
    model.get_input_embeddings().weight.data[:, 8:] *= 0.05
    draw = numpy.random.default_rng(0)
    text = " ".join(f"w{i}" for i in draw.integers(3, 99, 3000))
    options = {"tokenizer": tokenizer, "verbose": False, "target": "ort"}
    found = []
    for own in ({}, {"quantize": "int4"}, {"quantize": "int4", "calibration_text": text}):
        pt2onnx.hf.export(model, tmp_path / "out", **options, **own)
        found.append(logits(tmp_path / "out" / "model.onnx", 16))
    plain, calibrated = (float(((one - found[0]) ** 2).mean()) for one in found[1:])
    assert 0 < calibrated < 0.8 * plain, (calibrated, plain)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "is for quantize='int4'"),
        ({"quantize": "int4"}, "needs a tokenizer"),
        ({"quantize": "int4", "layout": "transformers.js"}, "leave out quantize"),
    ],
)
def test_a_text_needs_a_tokenizer_and_weights_of_4_bits(options, text, tmp_path):
    with pytest.raises(ValueError, match=text):
        pt2onnx.hf.export(generator(LLAMA), tmp_path / "out", calibration_text="w5", **options)
    assert list(tmp_path.iterdir()) == []


def test_transformers_js(tmp_path):
    model = generator(LLAMA)
    dtypes = ["fp32", "fp16", "q8", "q4", "q4f16"]
    programs = pt2onnx.hf.export(
        model, tmp_path, layout="transformers.js", dtypes=dtypes, verbose=False
    )
    ends = ["", "_fp16", "_quantized", "_q4", "_q4f16"]
    assert list(programs) == [f"model{end}" for end in ends]
    assert {path.name for path in (tmp_path / "onnx").iterdir()} == {
        f"model{end}.onnx" for end in ends
    }
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["transformers.js_config"]["use_external_data_format"] == {}
    assert_tokens(model, tmp_path / "onnx")
    expected = logits(tmp_path / "onnx" / "model.onnx")
    for end, bound in zip(ends[1:], (0.01, 0.1, 0.5, 0.5), strict=True):
        found = logits(tmp_path / "onnx" / f"model{end}.onnx")
        assert 0 < abs(found - expected).max() < bound * abs(expected).max(), end


def logits(path, width=8):
    """The logits of a text without a past."""
    session = onnxruntime.InferenceSession(path)
    empty = numpy.zeros((1, 2, 0, width), numpy.float32)
    feed = {one.name: empty for one in session.get_inputs() if one.name.startswith("past")}
    feed["input_ids"] = numpy.array([[5, 6, 7]])
    feed["attention_mask"] = numpy.ones((1, 3), numpy.int64)
    feed["position_ids"] = numpy.array([[0, 1, 2]])
    return session.run(["logits"], feed)[0]


def test_transformers_js_takes_one_decoder(tmp_path):
    model = generator(T5)
    pt2onnx.hf.export(model, tmp_path, layout="transformers.js", verbose=False)
    names = {path.name for path in (tmp_path / "onnx").iterdir()}
    assert names == {"encoder_model.onnx", "decoder_model_merged.onnx"}
    assert_tokens(model, tmp_path / "onnx")


@pytest.mark.parametrize("whole", [False, True])
def test_transformers_js_finds_the_processor_of_images(whole, tmp_path, source):
    vit = next(row for row in hf_models.PAIRS if row[0] == "ViTForImageClassification")
    clip = next(row for row in hf_models.PAIRS if row[0] == "CLIPModel")
    size = {"height": 32, "width": 32}
    images = transformers.CLIPImageProcessorPil(size=size, crop_size=size)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    given = transformers.CLIPProcessor(images, tokenizer) if whole else images
    model = made(*(clip if whole else vit)[:3])
    options = {"layout": "transformers.js", "tokenizer": given, "verbose": False}
    program = pt2onnx.hf.export(model, tmp_path / "out", **options)["model"]
    assert "pixel_values" in program.input_names
    config = json.loads((tmp_path / "out" / "preprocessor_config.json").read_text())
    assert config["size"] == size
    assert config["image_processor_type"].startswith("CLIPImageProcessor")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"layout": "genai", "target": "ort"}, "contradict each other"),
        ({"layout": "optimum", "target": "ort-genai"}, "contradict each other"),
        ({"layout": "hub"}, "there is no layout 'hub'"),
        ({"dtypes": ["fp16"]}, "dtypes are of the layout 'transformers.js'"),
        ({"layout": "transformers.js", "dtypes": ["q5"]}, "dtypes has 'q5'"),
        ({"layout": "transformers.js", "quantize": "int8"}, "leave out quantize"),
        ({"weights": "embed", "shard_size": "1MB"}, "leave out shard_size"),
        ({"merge_decoders": True}, "merge_decoders is for models with an encoder"),
    ],
)
def test_options_that_contradict_each_other(options, text, tmp_path):
    with pytest.raises(ValueError, match=text):
        pt2onnx.hf.export(generator(LLAMA), tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_folder_as_it_was(tmp_path, monkeypatch):
    model = generator(LLAMA)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.onnx").write_text("old")

    def full(folder):
        raise OSError(28, "No space left on device", folder)

    monkeypatch.setattr(model.config, "save_pretrained", full)
    with pytest.raises(OSError, match="No space left"):
        pt2onnx.hf.export(model, tmp_path / "out", verbose=False)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "model.onnx").read_text() == "old"
