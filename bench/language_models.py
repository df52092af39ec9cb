"""Tries architectures of transformers: exports small random models, and compares 20 greedy tokens
with transformers'.

    python3 bench/language_models.py             # all of architectures.py
    python3 bench/language_models.py llama t5    # some

Prints a Markdown table: whether tokens are equal for one text and for two of unequal lengths, and
the seconds of the export. Each model has a process and at most five minutes. Needs the Python
package, transformers and ONNX Runtime.
"""

import importlib
import multiprocessing
import os
import sys
import tempfile
import time
import warnings

STEPS = 20
LIMIT = 300
#: One text that is longer than sliding windows, and two of unequal lengths.
BATCHES = (
    [[5, 9, 77, 31, 200, 4, 17, 60, 8, 99, 120]],
    [[3, 4, 5, 6, 7, 8, 9], [30, 40, 50]],
)
#: Parameters whose noise makes states grow without bounds.
STABLE = ("A_log", "dt_bias", "dt_proj.bias", "recurrent_param", "time_decay")


def made(name):
    """A model of an architecture whose tokens vary."""
    import torch
    import transformers
    from architectures import _TOKENS, ARCHITECTURES

    config, kind, common, own = ARCHITECTURES[name]
    fields = {key: value for key, value in {**_TOKENS, **common, **own}.items() if value is not None}
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**fields)).eval()
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if parameter.is_floating_point() and not any(part in path for part in STABLE):
                parameter.add_(0.15 * torch.randn(parameter.shape, generator=noise))
    model.generation_config.eos_token_id = None
    model.generation_config.forced_eos_token_id = None
    return model


def padded(texts, right):
    """Tokens and masks of texts."""
    import numpy

    longest = max(map(len, texts))
    ids = numpy.zeros((len(texts), longest), numpy.int64)
    mask = numpy.zeros_like(ids)
    for row, text in enumerate(texts):
        at = slice(0, len(text)) if right else slice(longest - len(text), longest)
        ids[row, at], mask[row, at] = text, 1
    return ids, mask


def tried(name):
    """The cells of a row."""
    import pt2onnx
    import torch
    from pt2onnx.hf import _runner

    model = made(name)
    if getattr(model, "main_input_name", "input_ids") != "input_ids":
        return audio(model)
    both = model.config.is_encoder_decoder
    expected = []
    for texts in BATCHES:
        ids, mask = padded(texts, both)
        given = {"attention_mask": torch.tensor(mask), "do_sample": False}
        tokens = model.generate(torch.tensor(ids), max_new_tokens=STEPS, min_new_tokens=STEPS, **given)
        expected.append((ids, mask, tokens.numpy()[:, 1 if both else ids.shape[1] :]))
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        pt2onnx.hf.export(model, folder, verbose=False)
        seconds = time.time() - start
        runner = _runner.Runner(folder, _runner.Settings.of(model))
        cells = []
        for ids, mask, tokens in expected:
            found = runner.greedy({"input_ids": ids, "attention_mask": mask}, STEPS)
            same = found.shape == tokens.shape and (found == tokens).all()
            cells.append("equal" if same else "other tokens")
    return [*cells, f"{seconds:.1f}"]


def audio(model):
    """The cells of a model of speech."""
    import pt2onnx
    from pt2onnx.hf import _inputs, _runner

    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        pt2onnx.hf.export(model, folder, verbose=False)
        seconds = time.time() - start
        runner = _runner.Runner(folder, _runner.Settings.of(model))
        cells = []
        for batch in (1, 2):
            name = model.main_input_name
            value = _inputs.Examples(model, batch).make((name,))[name].value
            given = {"do_sample": False, "max_new_tokens": STEPS, "min_new_tokens": STEPS}
            tokens = model.generate(**{name: value}, **given).numpy()
            found = runner.greedy({name: value.numpy()}, STEPS)
            same = (found == tokens[:, -STEPS:]).all()
            cells.append("equal" if same else "other tokens")
    return [*cells, f"{seconds:.1f}"]


def work(name, pipe):
    """Sends the cells of a row, or the error."""
    warnings.filterwarnings("ignore")
    try:
        pipe.send(tried(name))
    except Exception as error:
        text = str(error).strip().splitlines() or [""]
        pipe.send([f"{type(error).__name__}: {text[0][:100]}", "", ""])


def main():
    os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")
    from architectures import ARCHITECTURES

    # Processes begin with what all of them need.
    for name in ("pt2onnx", "onnxruntime", "transformers"):
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)
    names = sys.argv[1:] or list(ARCHITECTURES)
    print("| architecture | one text | two texts | seconds |\n| --- | --- | --- | ---: |", flush=True)
    equal = 0
    for name in names:
        own, other = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=work, args=(name, other))
        process.start()
        there = own.poll(LIMIT)
        cells = own.recv() if there else [f"more than {LIMIT} s", "", ""]
        process.kill()
        process.join()
        equal += cells[:2] == ["equal", "equal"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\n{equal} of {len(names)} are equal.")


if __name__ == "__main__":
    main()
