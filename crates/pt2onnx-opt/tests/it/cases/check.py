"""Runs the graphs of the case files in ONNX Runtime, before and after: the outputs must be the same.

    python crates/pt2onnx-opt/tests/it/cases/check.py [--skipped] [FILE ...]

Needs onnx, onnxruntime, numpy and ml_dtypes. Cases that cannot be run (errors, absent weights, random numbers, functions, operators that
ONNX Runtime lacks) are counted, and with `--skipped` named. The exit code is 1 if any differ.
"""

import collections
import pathlib
import re
import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime

#: The opset of graphs that do not declare one.
CANONICAL = 26
#: Sizes of dimensions that have names; 8 for others.
SIZES = {"N": 3, "M": 4, "B": 2, "H": 6, "W": 5, "D": 4, "S": 3, "T": 7, "P": 4, "K": 2}
#: Inputs that must have these elements.
ELEMENTS = {"s": [4, 6]}
#: Files of cases whose numbers are not of this kind: operators on constants, functions, and rules
#: that give other numbers.
OTHERS = {"endless", "eval", "outline"}
#: Rules of these files may round in another way.
ROUNDS = {"convert", "imported", "fuse", "legalise", "target"}
#: Cases that cannot be compared, by file and title, and why.
FREE = {
    ("fuse", "attention with a cache, rotated operands and rows without keys: group-query-attention 24 ort-genai"): "the operator takes several tokens with a past in a batch of 1 only: test_hf.py compares numbers",
    ("fuse", "attention with sinks and a cache: group-query-attention 24 ort-genai"): "the operator takes several tokens with a past in a batch of 1 only: bench/language_models.py compares tokens",
    ("target", "tokens are counted as they come: ort-genai 20"): "the mask has to be one of tokens",
    ("fuse", "a sliding window: group-query-attention 24 ort-genai"): "the operator takes several tokens with a past in a batch of 1 only: test_hf.py compares numbers",
    ("fuse", "angles of the positions of tokens become tables: group-query-attention 24 ort-genai 3"): "the operator counts positions itself: test_hf.py compares numbers",
    ("size_checks", "of a body's output: N % 2 == 0 and N > 2"): "the model has to fail for N = 3",
    ("convert", "the mask of Dropout, of opset 7: 12"): "ONNX Runtime has another mask before opset 12 than ONNX's reference",
    ("cleanup", "dropout outside of training"): "one of the nodes draws random numbers",
    ("legalise", "powers of integers: 11"): "ONNX does not say what 0 to a negative power is",
    ("fold", "weights are quantized, and what is quantized again is one constant; no constant becomes larger"): "8-bit floats as numbers",
}


class Skipped(Exception):
    """A case that cannot be run."""


def parse(text):
    """A model, as a case writes it."""
    elements = lambda m: f"{m[1]}[{m[2]}]{m[3]} {{{', '.join(['0'] * int(np.prod(eval(m[2] + ','))))}}}"
    text = re.sub(r"\b(\w+)\[([\d, ]+)\]((?: \w+ =)?) \{\.\.\.\}", elements, text.replace("{0 ...}", "{...}"))
    text = text.replace("?,", "u,").replace("?]", "w]")
    text = re.sub(r"(?<=[{ -])inf(?=[,}>])", "1e38", text)
    # The parser takes half precision by its bits only.
    for name, dtype in [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)]:
        bits = lambda m, dtype=dtype: m[1] + ", ".join(str(np.array(float(v), dtype).view(np.uint16)) for v in m[2].split(","))
        text = re.sub(r"(\b%s(?:\[[\d, ]+\])?(?: \w+ =)? \{)([^}.]*\.?[^}]*)" % name, bits, text)
    return onnx.parser.parse_model(text)


def both(file, title, body):
    """The models before and after."""
    before, after = body.split("---->\n")
    before = before.lstrip()
    # Errors have no graph, warnings come before it.
    graph = re.search(r"^(<|(main_)?graph\b)", after, re.M)
    if not graph or "Random" in before or "absent" in before:
        raise Skipped("no graphs that give numbers")
    if before.count("...") != after.count("..."):
        raise Skipped("weights that are not written out")
    after = after[graph.start() :]
    head = before[: before.index(">") + 1] if before.startswith("<") else f'<ir_version: 10, opset_import: ["" : {CANONICAL}]>'
    before = before if before.startswith("<") else head + before
    if file in ("convert", "legalise", "target"):
        made = title.rpartition(": ")[2].split()[-1]
        head = re.sub(r'"" *: *\d+', f'"" : {made}', re.sub(r"ir_version *: *\d+", "ir_version: 10", head))
    return parse(before), parse(after if after.startswith("<") else head + after)


def run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    # ONNX Runtime's BatchNormalization writes the statistics of training into its inputs.
    return session.run(None, {name: value.copy() for name, value in feeds.items()})


def feed(value, rng):
    tensor = value.type.tensor_type
    dims = [d.dim_value if d.HasField("dim_value") else SIZES.get(d.dim_param, 8) for d in tensor.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if value.name in ELEMENTS:
        return np.array(ELEMENTS[value.name], dtype)
    if dtype == np.bool_:
        return np.asarray(rng.random(dims) > 0.5)
    return np.asarray(rng.standard_normal(dims) * 2).astype(dtype)


def check(file, title, body):
    """Raises an error if the outputs differ."""
    if (file, title) in FREE:
        raise Skipped(FREE[file, title])
    before, after = both(file, title, body)
    if file == "legalise":
        onnx.checker.check_model(after)
    rng = np.random.default_rng(0)
    feeds = {value.name: feed(value, rng) for value in before.graph.input}
    try:
        expected = run(before, feeds)
    except Exception as error:
        raise Skipped(f"ONNX Runtime refuses the graph before: {error}") from error
    for x, y in zip(expected, run(after, feeds), strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape, (x.dtype, x.shape, y.dtype, y.shape)
        tolerance = 2e-3 if x.dtype == np.float16 else 1e-5
        if file in ROUNDS and x.dtype.kind == "f":
            np.testing.assert_allclose(y, x, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(y, x)


def main():
    arguments = sys.argv[1:]
    chosen = [a for a in arguments if not a.startswith("-")]
    counts, free = collections.Counter(), set(FREE)
    for path in sorted(pathlib.Path(__file__).parent.glob("*.txt")):
        if path.stem in OTHERS or (chosen and path.stem not in chosen):
            continue
        for case in path.read_text().split("\n## ")[1:]:
            title, body = case.split("\n", 1)
            free.discard((path.stem, title))
            try:
                check(path.stem, title, body)
                counts["same"] += 1
            except Skipped as reason:
                counts["skipped"] += 1
                if "--skipped" in arguments:
                    print(f"skipped {path.stem}: {title}: {str(reason)[:200]}")
            except Exception as error:
                counts["different"] += 1
                print(f"different {path.stem}: {title}: {' '.join(str(error).split())[:300]}")
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    unknown = [] if chosen else free
    for file, title in unknown:
        print(f"there is no such case: {file}: {title}")
    sys.exit(bool(counts["different"] or unknown))


if __name__ == "__main__":
    main()
