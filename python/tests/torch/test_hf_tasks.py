"""Every task of models of transformers: outputs beside the module's."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
onnxruntime = pytest.importorskip("onnxruntime")

import hf_models  # noqa: E402
import pt2onnx  # noqa: E402
from pt2onnx.hf import _heads, _inputs, _tasks  # noqa: E402


def made(name, config, fields):
    """A model whose parameters are all other than 0 and 1."""
    torch.manual_seed(0)
    model = getattr(transformers, name)(getattr(transformers, config)(**fields)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize(
    ("name", "config", "fields", "task"),
    hf_models.PAIRS,
    ids=[f"{name}-{task or 'own'}" for name, _, _, task in hf_models.PAIRS],
)
def test_outputs_are_those_of_the_module(name, config, fields, task, tmp_path):
    model = made(name, config, fields)
    pt2onnx.hf.export(model, tmp_path, task, verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    names = [output.name for output in session.get_outputs()]
    chosen = _tasks.chosen(model, task)
    head = _heads.Head(model, chosen.outputs)
    choices = chosen.name == "multiple-choice"
    for batch, length in ((2, 16), (3, 11)):
        examples = _inputs.Examples(model, batch, length, choices)
        inputs = {key: one.value for key, one in examples.make(chosen.inputs).items()}
        assert [one.name for one in session.get_inputs()] == list(inputs)
        with torch.no_grad():
            expected = head(inputs)
        found = session.run(None, {key: value.numpy() for key, value in inputs.items()})
        assert names == list(expected)
        for output, got in zip(names, found, strict=True):
            torch.testing.assert_close(
                torch.tensor(got),
                expected[output],
                rtol=1e-3,
                atol=1e-4,
            )


BERT = hf_models.PAIRS[1][:3]
CLIP = next(row[:3] for row in hf_models.PAIRS if row[0] == "CLIPModel")


def test_texts_and_images_have_batches_apart(tmp_path):
    model = made(*CLIP)
    options = {"layout": "transformers.js", "dtypes": ["fp32", "fp16"], "verbose": False}
    pt2onnx.hf.export(model, tmp_path, **options)
    texts = _inputs.Examples(model, 2).make(("input_ids", "attention_mask"))
    inputs = {name: one.value for name, one in texts.items()}
    inputs["pixel_values"] = torch.randn(3, 3, 32, 32)
    with torch.no_grad():
        expected = model(**inputs).logits_per_image
    assert expected.shape == (3, 2)
    for file in ("model.onnx", "model_fp16.onnx"):
        session = onnxruntime.InferenceSession(tmp_path / "onnx" / file)
        feed = {name: value.numpy() for name, value in inputs.items()}
        (found,) = session.run(["logits_per_image"], feed)
        torch.testing.assert_close(torch.tensor(found), expected, rtol=1e-2, atol=1e-3)


def test_features_of_a_model_with_a_head_are_those_before_it(tmp_path):
    model = made(*BERT)
    program = pt2onnx.hf.export(model, tmp_path, "feature-extraction", verify=True, verbose=False)
    assert program["model"].output_names == ["last_hidden_state"]
    assert program["model"].verification.ok


def test_unknown_tasks_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"there is no task 'fill_mask': give one of .*fill-mask"):
        pt2onnx.hf.export(made(*BERT), tmp_path / "out", "fill_mask")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("task", ["question-answering", "fill-mask-with-past"])
def test_tasks_that_the_class_lacks_are_refused(task, tmp_path):
    with pytest.raises(ValueError, match=rf"BertForMaskedLM does not have the task '{task}'"):
        pt2onnx.hf.export(made(*BERT), tmp_path / "out", task)
    assert not (tmp_path / "out").exists()
