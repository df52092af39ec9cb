"""Measures and judges the exports of optimum-onnx with torch.onnx.export and with pt2onnx.export in its place.

    PYTHONPATH=python OMP_NUM_THREADS=1 python bench/optimum_onnx.py [--runs 3] [NAME ...]

Needs the packages of bench/optimum_onnx.txt. Models have random weights; nothing is downloaded. Each export runs in its own
process, which exports once before it is measured, with the validation of optimum. Then optimum runs the model at other sizes
than those of the export: generated tokens and outputs are compared with those of transformers. Printed is a table: seconds of
CPU of the calls of the export function, whether optimum's validation passes, and the result of the comparison.
"""

import json
import time
from pathlib import Path

from export_table import WAYS, export_function, medians, parse_options, print_table, results

TEXT = {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
LAYERS = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
BART = {"vocab_size": 120, "d_model": 32, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64, **LAYERS}
PIXELS = {"image_size": 32, "patch_size": 8}
VISION = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, **PIXELS}

#: By name of the model's classes: optimum's task, the class of transformers and the one of optimum that run it, the config.
MODELS = {
    "Bert": ("fill-mask", "ForMaskedLM", "ForMaskedLM", TEXT),
    "DistilBert": ("question-answering", "ForQuestionAnswering", "ForQuestionAnswering",
                   {"vocab_size": 120, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}),
    "Albert": ("text-classification", "ForSequenceClassification", "ForSequenceClassification", {**TEXT, "embedding_size": 16}),
    "GPT2": ("text-generation-with-past", "LMHeadModel", "ForCausalLM",
             {"vocab_size": 120, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    "Llama": ("text-generation-with-past", "ForCausalLM", "ForCausalLM", {**TEXT, "num_key_value_heads": 2}),
    "Mistral": ("text-generation-with-past", "ForCausalLM", "ForCausalLM", {**TEXT, "num_key_value_heads": 2, "sliding_window": 6}),
    "Qwen2": ("text-generation-with-past", "ForCausalLM", "ForCausalLM", {**TEXT, "num_key_value_heads": 2}),
    "OPT": ("text-generation-with-past", "ForCausalLM", "ForCausalLM",
            {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 48,
             "max_position_embeddings": 64, "word_embed_proj_dim": 32}),
    "T5": ("text2text-generation-with-past", "ForConditionalGeneration", "ForSeq2SeqLM",
           {"vocab_size": 120, "d_model": 32, "d_kv": 8, "num_layers": 2, "num_heads": 4, "d_ff": 48, "decoder_start_token_id": 0}),
    "Bart": ("text2text-generation-with-past", "ForConditionalGeneration", "ForSeq2SeqLM", BART),
    "Marian": ("text2text-generation-with-past", "MTModel", "ForSeq2SeqLM",
               {**BART, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "forced_eos_token_id": None}),
    "Whisper": ("automatic-speech-recognition-with-past", "ForConditionalGeneration", "ForSpeechSeq2Seq",
                {**BART, "num_mel_bins": 8, "max_source_positions": 1500, "max_target_positions": 64, "pad_token_id": 0,
                 "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3, "suppress_tokens": None,
                 "begin_suppress_tokens": None}),
    "ViT": ("image-classification", "ForImageClassification", "ForImageClassification", VISION),
    "CLIP": ("zero-shot-image-classification", "Model", "ForZeroShotImageClassification",
             {"text_config": {**TEXT, "max_position_embeddings": 32}, "vision_config": VISION, "projection_dim": 16}),
    "Segformer": ("semantic-segmentation", "ForSemanticSegmentation", "ForSemanticSegmentation",
                  {"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1], "decoder_hidden_size": 16,
                   "num_attention_heads": [1, 2, 4, 4]}),
    "Wav2Vec2": ("automatic-speech-recognition", "ForCTC", "ForCTC",
                 {**TEXT, "conv_dim": [16, 16, 16], "conv_stride": [5, 4, 4], "conv_kernel": [10, 8, 8],
                  "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}),
}

#: The beginnings of the tasks of models with an encoder and a decoder.
GENERATES = ("text2text", "automatic-speech-recognition-with")


def of_transformers(name):
    """A model with random weights that differ enough for tokens that vary."""
    import torch
    import transformers

    kind, _, config = MODELS[name][1:]
    torch.manual_seed(0)
    model = getattr(transformers, name + kind)(getattr(transformers, f"{name}Config")(**config))
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, 0, 0.2)
    return model.eval()


def texts(lengths, start=5):
    """Token ids of texts with these lengths, padded at the left, and their mask."""
    import torch

    longest = max(lengths)
    mask = torch.tensor([[int(at >= longest - length) for at in range(longest)] for length in lengths])
    ids = torch.arange(len(lengths) * longest).reshape(len(lengths), longest) * 7 % 110 + start
    return {"input_ids": ids * mask + (1 - mask), "attention_mask": mask}


def inputs_of(name):
    """Inputs of a model at several sizes."""
    import torch

    torch.manual_seed(1)
    if name in ("ViT", "Segformer"):
        size = 32 if name == "ViT" else 64
        return [{"pixel_values": torch.rand(batch, 3, size, size)} for batch in (1, 3)]
    if name == "CLIP":
        return [{**texts(lengths), "pixel_values": torch.rand(batch, 3, 32, 32)} for lengths, batch in (([5], 3), ([4, 9], 1))]
    if name == "Wav2Vec2":
        return [{"input_values": torch.randn(batch, length)} for batch, length in ((1, 4000), (3, 2500))]
    if name == "Whisper":
        return [{"input_features": torch.randn(batch, 8, 3000)} for batch in (1, 2)]
    lengths = [[1], [3], [11], [4, 9], [12, 2, 7]]
    return [texts(each) for each in (lengths if MODELS[name][0].endswith("past") else lengths[1:])]


def compared(name, model, folder, merged=True):
    """The differences between the model that optimum runs and the one of transformers. Decoders have to be merged, or not."""
    import optimum.onnxruntime as ort
    import torch

    task, _, kind, _ = MODELS[name]
    loaded = getattr(ort, f"ORTModel{kind}").from_pretrained(folder)
    if task.startswith(GENERATES) and loaded.decoder.is_merged != merged:
        return [f"decoders are {'not ' if merged else ''}merged"]
    problems = []
    for inputs in inputs_of(name):
        sizes = {key: tuple(value.shape) for key, value in inputs.items()}
        if task.endswith("with-past"):
            options = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False, "num_beams": 1}
            options |= {} if name == "Whisper" else {"pad_token_id": 1}
            ours, theirs = (each.generate(**inputs, **options) for each in (loaded, model))
            if not torch.equal(ours, theirs):
                problems.append(f"tokens at {sizes}")
            beams = {**options, "num_beams": 3}
            ours, theirs = (each.generate(**inputs, **beams) for each in (loaded, model))
            if not torch.equal(ours, theirs):
                problems.append(f"tokens of beams at {sizes}")
        if "decoder" in vars(loaded):
            inputs = {**inputs, "decoder_input_ids": torch.arange(5)[None].repeat(len(next(iter(inputs.values()))), 1) + 7}
        with torch.no_grad():
            ours, theirs = loaded(**inputs), model(**inputs)
        for key, value in theirs.items():
            if not isinstance(value, torch.Tensor) or key not in ours or "loss" in key:
                continue
            found = ours[key]
            gap = (found - value).abs().max().item() if found.shape == value.shape else float("inf")
            # Results at padding are arbitrary.
            if not gap <= 1e-3 * max(1, value.abs().max().item()):
                problems.append(f"{key} at {sizes}: {gap:.1g}")
    return problems


def export(way, name, folder):
    """Exports twice in this process. Prints the seconds of the calls of the second export, and what is wrong."""
    import torch
    import transformers

    function, seconds = export_function(way), []

    def timed(*args, **options):
        start = time.process_time()
        function(*args, **options)
        seconds[-1] += time.process_time() - start

    torch.onnx.export = timed
    from optimum.exporters.onnx import convert, main_export

    transformers.logging.set_verbosity_error()
    validate, problems = convert.validate_models_outputs, []

    def validated(*args, **options):
        try:
            return validate(*args, **options)
        except Exception as error:
            # Optimum makes a warning of differences.
            problems.append(f"validation: {error}")
            raise

    convert.validate_models_outputs = validated
    source = Path(folder, "source")
    made = of_transformers(name)
    made.save_pretrained(source)
    # Weights that are computed are not in the file.
    model = type(made).from_pretrained(source).eval()
    for at in range(2):
        seconds.append(0.0)
        out = Path(folder, f"out {at}")
        try:
            main_export(str(source), out, task=MODELS[name][0], do_validation=True, library_name="transformers")
        except Exception as error:
            while error.__cause__:
                error = error.__cause__
            problems.append(f"{type(error).__name__}: {error}")
            break
    if not problems:
        problems += compared(name, model, out)
    print(json.dumps({"seconds": seconds[-1], "problems": list(dict.fromkeys(problems))}))


def measure(name, runs):
    """The cells of a model in the table."""
    found, _ = results(__file__, name, runs)
    problems = ["; ".join(found[way][0]["problems"]) or "right" for way in WAYS]
    return [name, MODELS[name][0]], medians(found, "seconds"), problems


def main():
    given = parse_options(__doc__, MODELS)
    if given.way:
        return export(given.way, given.names[0], given.folder)
    verdicts = [(title, "---") for title in ("with torch.onnx", "with pt2onnx")]
    print_table(given.names, ["model", "task"], verdicts, lambda name: measure(name, given.runs))


if __name__ == "__main__":
    main()
