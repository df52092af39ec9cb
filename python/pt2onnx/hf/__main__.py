"""The command: ``python -m pt2onnx.hf FOLDER OUT``, and ``generate OUT TEXT``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from .. import _errors
from . import _options, _tasks, export

_DESCRIPTION = """
Exports a model of transformers as ONNX: from a folder with config.json, weights and tokenizer, as
save_pretrained or a download writes it, to a folder that a runtime loads.

    python -m pt2onnx.hf ./llama ./out                        for ONNX Runtime and optimum
    python -m pt2onnx.hf ./llama ./out --target ort-genai     for onnxruntime-genai
    python -m pt2onnx.hf ./llama ./out --layout transformers.js --dtypes fp32,q4
    python -m pt2onnx.hf ./bert ./out --task feature-extraction
    python -m pt2onnx.hf generate ./out "Once upon a time"    tries a language model
"""

_GENERATE = """
Continues a text with a language model that was exported, and prints how many tokens a second it
made. onnxruntime-genai runs folders with genai_config.json, if it is installed; ONNX Runtime runs
all others.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns its exit code.

    Args:
        arguments: The words of the command line.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _generate(words[1:]) if words[:1] == ["generate"] else _export(words)
    except (ValueError, OSError, ImportError, _errors.OnnxExporterError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _export(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m pt2onnx.hf",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tasks = ", ".join(dict.fromkeys(task.name for task in _tasks.TASKS))
    parser.add_argument("model", metavar="FOLDER", help="the folder of the model")
    parser.add_argument("out", metavar="OUT", help="the folder to write")
    parser.add_argument(
        "--task", help=f"what the model is for; default: that of its class. One of: {tasks}"
    )
    parser.add_argument(
        "--target",
        choices=["standard", "ort", "ort-cpu", "ort-genai", "tensorrt", "tract"],
        help="the runtime to write for; ort and ort-genai use operators of ONNX Runtime that are "
        "faster. Default: standard, which all runtimes read",
    )
    parser.add_argument(
        "--quantize",
        choices=["int8", "int4", "float8", "dynamic-int8"],
        help="store weights in fewer bits: the files get smaller, results less exact",
    )
    parser.add_argument(
        "--calibration-text",
        metavar="FILE.txt",
        help="a text like those that the model will get, some ten thousand tokens: --quantize int4 "
        "then harms results much less, and takes longer",
    )
    parser.add_argument(
        "--weights",
        choices=["auto", "embed", "external", "link"],
        help="where weights are: in the model, in a file beside it, or with link in the files of "
        "FOLDER, so that nothing is copied; OUT is FOLDER then. Default: auto, by their size",
    )
    parser.add_argument(
        "--allow-external-paths",
        action="store_true",
        default=None,
        help="let --weights link refer to a FOLDER outside of OUT, which many runtimes refuse",
    )
    parser.add_argument("--opset", type=int, help="the version of ONNX's operators")
    parser.add_argument(
        "--layout",
        choices=_options.LAYOUTS,
        help="the names of the files: those of optimum (default), of onnxruntime-genai, or of "
        "transformers.js",
    )
    parser.add_argument(
        "--dtypes",
        help=f"for transformers.js, the element types with commas: {','.join(_options.VARIANTS)}",
    )
    parser.add_argument(
        "--merge-decoders",
        action="store_true",
        help="write both decoders of an encoder-decoder model into one file, too",
    )
    parser.add_argument(
        "--all-logits",
        action="store_true",
        help="for ort-genai, return the logits of all tokens, not of the last one of each text",
    )
    parser.add_argument(
        "--verify", action="store_true", help="compare the result with the model in ONNX Runtime"
    )
    given = parser.parse_args(words)
    if not sys.stderr.isatty():
        importlib.import_module("transformers").utils.logging.disable_progress_bar()
    named: dict[str, Any] = {"target": given.target, "quantize": given.quantize}
    named["opset_version"], named["weights"] = given.opset, given.weights
    named["allow_external_paths"] = given.allow_external_paths
    text = None
    if given.calibration_text:
        with open(given.calibration_text, encoding="utf-8") as file:
            text = file.read()
    made = export(
        given.model,
        given.out,
        given.task,
        layout=given.layout,
        dtypes=given.dtypes.split(",") if given.dtypes else None,
        merge_decoders=given.merge_decoders,
        all_logits=given.all_logits,
        calibration_text=text,
        verify=given.verify,
        **{name: value for name, value in named.items() if value is not None},
    )
    print(f"{given.out}: {', '.join(f'{name}.onnx' for name in made)}")
    return 0


def _generate(words: list[str]) -> int:
    from . import _streaming

    parser = argparse.ArgumentParser(
        prog="python -m pt2onnx.hf generate",
        description=_GENERATE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", metavar="OUT", help="the folder that was exported")
    parser.add_argument("text", metavar="TEXT", help="the text to continue")
    parser.add_argument(
        "--max-new-tokens", type=int, default=64, help="how many tokens at most; default: 64"
    )
    parser.add_argument(
        "--raw", action="store_true", help="give the text as it is, without the chat template"
    )
    given = parser.parse_args(words)
    count, seconds = 0, 0.0
    for part in _streaming.stream(given.folder, given.text, given.max_new_tokens, given.raw):
        print(part.text, end="", flush=True)
        count, seconds = part.tokens, part.seconds
    print(f"\n{count} tokens, {count / max(seconds, 1e-9):.1f} a second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
