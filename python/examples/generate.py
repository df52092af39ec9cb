"""Text generation with ONNX Runtime: exports small random models, and compares the tokens with
transformers' greedy search.

    python python/examples/generate.py            # all models python python/examples/generate.py
    llama t5   # some

Each model is tried with prompts of several lengths, and with several prompts of different lengths
at once. Nothing is downloaded. Exits with 1 if tokens differ.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pt2onnx
import torch
import transformers

VOCABULARY = 128
#: New tokens of each prompt: more than the sliding windows.
STEPS = 16
#: Lengths of the prompts of each batch.
BATCHES = ([1], [5], [9], [7, 2, 4])

Arrays = dict[str, np.ndarray]


def session(folder: Path, name: str) -> ort.InferenceSession:
    """The model of a file."""
    return ort.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])


def run(model: ort.InferenceSession, inputs: Arrays) -> Arrays:
    """The outputs by name."""
    names = [output.name for output in model.get_outputs()]
    wanted = {i.name for i in model.get_inputs()}
    return dict(
        zip(
            names,
            model.run(names, {name: value for name, value in inputs.items() if name in wanted}),
            strict=False,
        )
    )


def next_past(outputs: Arrays) -> Arrays:
    """The cache as inputs of the next call."""
    present = {name: value for name, value in outputs.items() if name.startswith("present.")}
    return {
        f"past_key_values.{name.removeprefix('present.')}": value for name, value in present.items()
    }


def empty_past(model: ort.InferenceSession, batch: int) -> Arrays:
    """A cache without tokens."""
    made = {}
    for value in model.get_inputs():
        if value.name.startswith("past_key_values."):
            heads, size = value.shape[1], value.shape[3]
            made[value.name] = np.zeros((batch, heads, 0, size), np.float32)
    return made


def decode(folder: Path, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Greedy search with a decoder. Prompts are padded on the left."""
    model = session(folder, "model")
    past = empty_past(model, len(ids))
    tokens, found = ids, []
    for _ in range(STEPS):
        positions = np.maximum(mask.cumsum(1) - 1, 0)[:, -tokens.shape[1] :]
        outputs = run(
            model, {"input_ids": tokens, "attention_mask": mask, "position_ids": positions, **past}
        )
        tokens = outputs["logits"][:, -1:].argmax(-1)
        found.append(tokens)
        past = next_past(outputs)
        mask = np.concatenate([mask, np.ones_like(tokens)], 1)
    return np.concatenate(found, 1)


def encode_decode(folder: Path, ids: np.ndarray, mask: np.ndarray, start: int) -> np.ndarray:
    """Greedy search with an encoder and a decoder. Prompts are padded on the right."""
    states = run(session(folder, "encoder_model"), {"input_ids": ids, "attention_mask": mask})[
        "last_hidden_state"
    ]
    first, others = session(folder, "decoder_model"), session(folder, "decoder_with_past_model")
    tokens, found = np.full((len(ids), 1), start), []
    inputs: Arrays = {"encoder_attention_mask": mask, "encoder_hidden_states": states}
    for step in range(STEPS):
        outputs = run(others if step else first, {"input_ids": tokens, **inputs})
        tokens = outputs["logits"][:, -1:].argmax(-1)
        found.append(tokens)
        # The encoder's half of the cache comes from the first call only.
        inputs |= next_past(outputs)
    return np.concatenate(found, 1)


def llama() -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes(), **ids()))


def gpt2() -> Any:
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=VOCABULARY, **ids())
    )


def qwen2() -> Any:
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**sizes(), **ids()))


def qwen3() -> Any:
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**sizes(), **ids(), head_dim=8))


def mistral() -> Any:
    """Its attention has a window of a few tokens."""
    return transformers.MistralForCausalLM(
        transformers.MistralConfig(**sizes(), **ids(), sliding_window=8)
    )


def t5() -> Any:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    config = transformers.T5Config(
        **sizes, vocab_size=VOCABULARY, decoder_start_token_id=0, **ids()
    )
    return transformers.T5ForConditionalGeneration(config)


def sizes() -> dict[str, int]:
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "vocab_size": VOCABULARY,
        **heads,
    }


def ids() -> dict[str, int | None]:
    """No token ends a text, so that all texts are equally long."""
    return {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None}


MODELS: dict[str, Callable[[], Any]] = {
    f.__name__: f for f in (llama, gpt2, qwen2, qwen3, mistral, t5)
}


def compare(name: str, folder: Path) -> bool:
    """Exports a model, and compares all batches. Prints a line for each."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    # Random weights of the usual size give the same token over and over.
    for parameter in model.parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    pt2onnx.hf.export(model, folder)
    both = model.config.is_encoder_decoder
    equal = True
    for lengths in BATCHES:
        prompts = [torch.randint(2, VOCABULARY, (length,)) for length in lengths]
        side = "right" if both else "left"
        ids = torch.nn.utils.rnn.pad_sequence(prompts, batch_first=True, padding_side=side)
        mask = torch.nn.utils.rnn.pad_sequence(
            [torch.ones_like(p) for p in prompts], batch_first=True, padding_side=side
        )
        expected = model.generate(
            ids, attention_mask=mask, do_sample=False, max_new_tokens=STEPS
        ).numpy()
        expected = expected[:, 1:] if both else expected[:, ids.shape[1] :]
        given = folder, ids.numpy(), mask.numpy()
        found = (
            encode_decode(*given, model.config.decoder_start_token_id) if both else decode(*given)
        )
        same = np.array_equal(found, expected)
        equal &= same
        result = "equal" if same else f"DIFFERENT, expected {expected.tolist()}"
        print(f"{name}, prompts of {lengths}: {result} {found.tolist()}")
    return equal


def main(names: list[str]) -> int:
    transformers.logging.set_verbosity_error()
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        print(f"no model {unknown[0]!r}; there are {', '.join(MODELS)}", file=sys.stderr)
        return 2
    results = []
    for name in names or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            results.append(compare(name, Path(folder)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
