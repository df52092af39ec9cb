"""Runs folders of pt2onnx.hf.export in optimum's ORTModel classes, and compares tokens and outputs with transformers'.

    PYTHONPATH=python OMP_NUM_THREADS=1 python bench/optimum_folders.py [NAME ...]

Needs the packages of bench/optimum_onnx.txt, whose models with random weights these are. Those with an encoder and a decoder are
exported with separate decoders, and with merged ones. Printed is a table.
"""

import os
import sys
import tempfile
import warnings
from pathlib import Path

from optimum_onnx import GENERATES, MODELS, compared, of_transformers

#: The separate decoders, which optimum prefers to merged ones.
APART = ("decoder_model.onnx", "decoder_with_past_model.onnx")


def judged(name, merged):
    """The problems of a folder, or ``right``."""
    import pt2onnx

    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "source"), Path(folder, "out")
        made = of_transformers(name)
        made.save_pretrained(source)
        # Weights that are computed are not in the file.
        model = type(made).from_pretrained(source).eval()
        try:
            pt2onnx.hf.export(model, out, MODELS[name][0], merge_decoders=merged, verbose=False)
            if merged:
                for file in APART:
                    (out / file).unlink()
            problems = compared(name, model, out, merged)
        except Exception as error:
            problems = [f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"]
    return "; ".join(dict.fromkeys(problems)) or "right"


def main():
    import torch
    import transformers

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    names = [name for name in sys.argv[1:] if name in MODELS] or list(MODELS)
    print("| model | task | files | merged decoders |\n| --- | --- | --- | --- |")
    for name in names:
        task = MODELS[name][0]
        cells = [name, task, judged(name, False), judged(name, True) if task.startswith(GENERATES) else ""]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    main()
