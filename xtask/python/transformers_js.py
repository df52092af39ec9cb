"""Exports folders for transformers.js, runs them in Node, and compares with transformers.

    python transformers_js.py MODULES [NAME ...]

MODULES is the folder in which npm installed @huggingface/transformers. Models are small and have
random weights, a tokenizer and processors. Tokens and classes of fp32 and fp16 are those of
transformers; of others, the Kullback-Leibler divergence from its logits is printed. Prints a
Markdown table. The exit code is 1 if anything differs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))

DTYPES = ("fp32", "fp16", "q8", "q4", "q4f16")
EXACT = ("fp32", "fp16")
#: The largest divergence of the others.
LARGEST = {"q8": 0.02, "q4": 0.5, "q4f16": 0.5}
STEPS = 12
#: How far the best token is above the next, and the seeds that are tried for it.
MARGIN, SEEDS = 0.05, 40
TEXTS = ["the cat sat on the mat", "a dog"]
#: The sides of images, and the samples of audio of a second.
PIXELS, RATE = 32, 16000
TEXT = {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
VISION = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": PIXELS, "patch_size": 8}

#: By name: what Node does, and an architecture, or the configuration, the class and the fields.
FOLDERS = {
    "llama": ("decoder", "llama"),
    "gemma3_text": ("decoder", "gemma3_text"),
    "bert": ("text", ("BertConfig", "BertForSequenceClassification", {**TEXT, "num_labels": 7})),
    "t5": ("both", "t5"),
    "bart": ("both", "bart"),
    "vit": ("image", ("ViTConfig", "ViTForImageClassification", {**VISION, "num_labels": 7})),
    "clip": ("clip", ("CLIPConfig", "CLIPModel", {
        "text_config": {**TEXT, "max_position_embeddings": 64, "eos_token_id": 2}, "vision_config": VISION, "projection_dim": 32})),
    "whisper": ("speech", ("WhisperConfig", "WhisperForConditionalGeneration", {
        "vocab_size": 320, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "num_mel_bins": 80, "max_target_positions": 64,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "suppress_tokens": None,
        "begin_suppress_tokens": None})),
    "wav2vec2": ("ctc", ("Wav2Vec2Config", "Wav2Vec2ForCTC", {
        **TEXT, "conv_dim": [32, 32, 32], "conv_stride": [5, 4, 4], "conv_kernel": [10, 8, 8], "num_feat_extract_layers": 3,
        "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4})),
}


def tokenizer(left):
    """A tokenizer of bytes, whose texts are padded."""
    import tokenizers
    import transformers

    special = ["<pad>", "<s>", "</s>"]
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = {token: at for at, token in enumerate([*special, *alphabet])}
    model = tokenizers.Tokenizer(tokenizers.models.BPE(words, []))
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    model.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, padding_side="left" if left else "right", pad_token="<pad>", bos_token="<s>", eos_token="</s>",
        unk_token="<pad>", model_input_names=["input_ids", "attention_mask"],
    )


def processor(kind):
    """The tokenizer or processor of a model."""
    import transformers

    size = {"height": PIXELS, "width": PIXELS}
    if kind == "image":
        return transformers.ViTImageProcessor(size=size)
    if kind == "clip":
        images = transformers.CLIPImageProcessor(size=size, crop_size=size)
        return transformers.CLIPProcessor(images, tokenizer(False))
    if kind == "speech":
        return transformers.WhisperProcessor(transformers.WhisperFeatureExtractor(), tokenizer(False))
    if kind == "ctc":
        return transformers.Wav2Vec2FeatureExtractor()
    return tokenizer(kind == "decoder")


def made(row, seed):
    """A model whose results vary, and which does not end a text."""
    import torch
    import transformers
    from architectures import _TOKENS, ARCHITECTURES

    config, kind, *fields = ARCHITECTURES[row] if isinstance(row, str) else row
    given = {key: value for part in (_TOKENS, *fields) for key, value in part.items() if value is not None}
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**given)).eval()
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim():
                parameter.add_(0.15 * torch.randn(parameter.shape, generator=noise))
    if model.can_generate():
        for settings in (model.config, model.generation_config):
            settings.eos_token_id = settings.forced_eos_token_id = None
    return model


def sound():
    """A second of sound."""
    import torch

    return (torch.randn(RATE, generator=torch.Generator().manual_seed(3)) * 0.2).numpy()


def image():
    """The bytes of an image."""
    import torch

    return torch.randint(0, 256, (PIXELS, PIXELS, 3), generator=torch.Generator().manual_seed(2)).to(torch.uint8).numpy()


def inputs(kind, tools):
    """The inputs of transformers."""
    if kind == "image":
        return tools(images=image(), return_tensors="pt")
    if kind == "clip":
        return tools(text=TEXTS, images=image(), padding=True, return_tensors="pt")
    if kind in ("speech", "ctc"):
        return tools(sound(), sampling_rate=RATE, return_tensors="pt")
    return tools(TEXTS, padding=True, return_tensors="pt")


def expected(kind, model, tools):
    """The tokens and logits of transformers, and the smallest margin of a token."""
    import torch

    given = dict(inputs(kind, tools))
    starts = torch.arange(5, 10)[None].repeat(len(next(iter(given.values()))), 1)
    tokens, scores = [], []
    with torch.no_grad():
        if kind in ("decoder", "both", "speech"):
            options = {"do_sample": False, "num_beams": 1, "max_new_tokens": STEPS, "min_new_tokens": STEPS}
            generated = model.generate(**given, **options, return_dict_in_generate=True, output_logits=True)
            tokens, scores = generated.sequences[:, -STEPS:].tolist(), list(generated.logits)
        more = {"decoder_input_ids": starts} if kind in ("both", "speech") else {}
        result = model(**given, **more)
    logits = result.logits_per_image if kind == "clip" else result.logits
    logits = logits[:, -1] if kind == "decoder" else logits
    return {"tokens": tokens, "logits": logits.tolist()}, min((margins(each).min().item() for each in scores), default=1.0)


def divergence(found, wanted):
    """The mean Kullback-Leibler divergence of two arrays of logits."""
    import torch

    found, wanted = torch.tensor(found), torch.tensor(wanted)
    if found.shape != wanted.shape:
        return float("inf")
    found, wanted = (each.reshape(-1, each.shape[-1]).log_softmax(-1) for each in (found, wanted))
    return (wanted.exp() * (wanted - found)).sum(-1).mean().item()


def same(found, wanted):
    """Whether tokens are equal, and the classes with the largest logits where these are above the next."""
    import torch

    own, logits = torch.tensor(found["logits"]), torch.tensor(wanted["logits"])
    equal = (own.argmax(-1) == logits.argmax(-1)) | (margins(logits) < MARGIN)
    return found["tokens"] == wanted["tokens"] and bool(equal.all())


def margins(logits):
    """How far the best is above the next, in standard deviations."""
    best = logits.topk(2, -1).values
    return (best[..., 0] - best[..., 1]) / logits.std(-1)


def exported(name, folder):
    """Exports a folder. Returns the results of transformers."""
    import pt2onnx

    kind, row = FOLDERS[name]
    tools = processor(kind)
    # In float16, the better one of two that are nearly equal is arbitrary.
    for seed in range(SEEDS):
        model = made(row, seed)
        wanted, margin = expected(kind, model, tools)
        if margin > MARGIN:
            break
    pt2onnx.hf.export(model, folder, tokenizer=tools, layout="transformers.js", dtypes=list(DTYPES), verbose=False)
    return wanted


def judged(dtype, found, wanted):
    """Whether the results of an element type are right, and its cell."""
    if "error" in found:
        return False, found["error"]
    equal, far = same(found, wanted), divergence(found["logits"], wanted["logits"])
    return equal if dtype in EXACT else far <= LARGEST[dtype], f"{'equal' if equal else 'other'}, {far:.1e}"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("modules", type=Path)
    options.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FOLDERS)}")
    given = options.parse_args()
    os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")
    print(f"| folder | {' | '.join(DTYPES)} |\n| --- |{' ---: |' * len(DTYPES)}", flush=True)
    wrong = 0
    for name in given.names or FOLDERS:
        with tempfile.TemporaryDirectory() as parent:
            wanted = exported(name, Path(parent, name))
            job = {"folder": name, "kind": FOLDERS[name][0], "dtypes": DTYPES, "steps": STEPS, "texts": TEXTS}
            job |= {"sound": sound().tolist(), "rate": RATE, "image": image().reshape(-1).tolist(), "pixels": PIXELS}
            Path(parent, "job.json").write_text(json.dumps(job))
            command = ["node", str(HERE / "transformers_js.mjs"), str(given.modules.resolve()), parent]
            subprocess.run(command, check=True, stdout=sys.stderr)
            results = json.loads(Path(parent, "results.json").read_text())
        cells = []
        for dtype in DTYPES:
            right, cell = judged(dtype, results[dtype], wanted)
            wrong += not right
            cells.append(cell)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\n{wrong} results are wrong.")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
