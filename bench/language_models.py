"""Tries architectures of transformers: exports small random models, and compares 20 greedy tokens
with transformers'.

    python3 bench/language_models.py             # all of architectures.py
    python3 bench/language_models.py llama t5    # some
    python3 bench/language_models.py --target ort-genai     # onnxruntime-genai makes the tokens

Prints a Markdown table: whether tokens are equal for one text and for two of unequal lengths, and
the seconds of the export. Each model has a process and at most five minutes. Needs the Python
package, transformers and ONNX Runtime.
"""

import argparse
import importlib
import multiprocessing
import os
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


def tried(name, target):
    """The cells of a row."""
    import pt2onnx
    import torch
    from architectures import VOCABULARY
    from pt2onnx.hf import _runner

    model = made(name)
    if getattr(model, "main_input_name", "input_ids") != "input_ids":
        return audio(model, target)
    genai = target == "ort-genai"
    both = model.config.is_encoder_decoder
    expected = []
    for texts in BATCHES:
        ids, mask = padded(texts, both)
        given = {"attention_mask": torch.tensor(mask), "do_sample": False}
        tokens = model.generate(torch.tensor(ids), max_new_tokens=STEPS, min_new_tokens=STEPS, **given)
        expected.append((ids, mask, tokens.numpy()[:, 1 if both else ids.shape[1] :]))
    # No text ends before its last token.
    seen = {token for *_, tokens in expected for token in tokens.ravel().tolist()}
    if genai:
        model.config.eos_token_id = min(set(range(VOCABULARY)) - seen)
    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        pt2onnx.hf.export(model, folder, verbose=False, target=target)
        seconds = time.time() - start
        if not genai:
            runner = _runner.Runner(folder, _runner.Settings.of(model))
        cells = []
        for (ids, mask, tokens), texts in zip(expected, BATCHES, strict=True):
            if genai:
                found = generated(folder, padded(texts, True)[0])
            else:
                found = runner.greedy({"input_ids": ids, "attention_mask": mask}, STEPS)
            same = found.shape == tokens.shape and (found == tokens).all()
            cells.append("equal" if same else "other tokens")
    return [*cells, f"{seconds:.1f}"]


def generated(folder, ids):
    """The tokens that onnxruntime-genai makes after texts, which are filled on the right."""
    import numpy
    import onnxruntime_genai

    model = onnxruntime_genai.Model(str(folder))
    parameters = onnxruntime_genai.GeneratorParams(model)
    rows, given = ids.shape
    parameters.set_search_options(do_sample=False, batch_size=rows, max_length=given + STEPS)
    generator = onnxruntime_genai.Generator(model, parameters)
    generator.append_tokens(ids.astype(numpy.int32))
    while not generator.is_done():
        generator.generate_next_token()
    return numpy.array([generator.get_sequence(row)[given:] for row in range(rows)])


def audio(model, target):
    """The cells of a model of speech."""
    import pt2onnx
    from pt2onnx.hf import _inputs, _runner

    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        pt2onnx.hf.export(model, folder, verbose=False, target=target)
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


def work(name, target, pipe):
    """Sends the cells of a row, or the error."""
    warnings.filterwarnings("ignore")
    try:
        pipe.send(tried(name, target))
    except Exception as error:
        text = str(error).strip().splitlines() or [""]
        pipe.send([f"{type(error).__name__}: {text[0][:160]}", "", ""])


def main():
    os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1")
    from architectures import ARCHITECTURES

    # Processes begin with what all of them need.
    for name in ("pt2onnx", "onnxruntime", "transformers"):
        importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(ARCHITECTURES))
    parser.add_argument("--target", default="standard", help="with ort-genai, onnxruntime-genai runs")
    given = parser.parse_args()
    print("| architecture | one text | two texts | seconds |\n| --- | --- | --- | ---: |", flush=True)
    equal = 0
    for name in given.names:
        own, other = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=work, args=(name, given.target, other))
        process.start()
        other.close()
        there = own.poll(LIMIT)
        try:
            cells = own.recv() if there else [f"more than {LIMIT} s", "", ""]
        except EOFError:
            process.join()
            cells = [f"the process ended with {process.exitcode}", "", ""]
        process.kill()
        process.join()
        equal += cells[:2] == ["equal", "equal"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(f"\n{equal} of {len(given.names)} are equal.")


if __name__ == "__main__":
    main()
