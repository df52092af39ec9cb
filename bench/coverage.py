"""Counts the conformance cases that pt2onnx and torch.onnx.export convert to a model with PyTorch's results.

    python3 bench/coverage.py

Prints a Markdown table. Needs `zstd`. For pt2onnx a case counts unless testdata/known-failures.txt lists it: `cargo
xtask test` runs every case and fails if that list is wrong. For torch.onnx.export the outcome was recorded in case.json
(`peer`) when the case was made: converted, accepted by onnx.checker, loaded and run by ONNX Runtime, equal to PyTorch.
Cases without such a record do not count.
"""

import io
import json
import subprocess
import tarfile
from pathlib import Path

TESTDATA = Path(__file__).parent.parent / "testdata"


def cases(bundle):
    """The case.json of each case, by its name in known-failures.txt."""
    tar = subprocess.run(["zstd", "-dc", bundle], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(tar.stdout)) as files:
        for file in files:
            if file.name.endswith("/case.json"):
                yield str(Path(file.name).parent).removeprefix("./"), json.load(files.extractfile(file))


def main():
    known = (TESTDATA / "known-failures.txt").read_text().splitlines()
    known = {line.split(":")[0] for line in known if not line.startswith("#")}
    print("| cases | number | pt2onnx | torch.onnx.export |\n| --- | ---: | ---: | ---: |")
    total = [0, 0, 0]
    for bundle in sorted((TESTDATA / "cases").glob("*.tar.zst")):
        suite = bundle.name.removesuffix(".tar.zst")
        peers = {f"{suite}/{name}": c["peer"]["status"] for name, c in cases(bundle) if "peer" in c}
        row = [len(peers), len(peers.keys() - known), list(peers.values()).count("pass")]
        if peers:
            print(f"| `{suite}` | {row[0]} | {row[1]} | {row[2]} |")
        total = [a + b for a, b in zip(total, row)]
    shares = [f"{n} ({n / total[0]:.1%})" for n in total[1:]]
    print(f"| all | {total[0]} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
