"""Folders of safetensors: their weights are mapped, and models may refer to the files."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

import pt2onnx  # noqa: E402
from test_hf_package import LLAMA, assert_tokens, generator  # noqa: E402

#: Larger weights than those that models keep inside.
FIELDS = {**LLAMA[2], "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}


def saved(folder, tied):
    """A model, and its folder with several files."""
    model = generator((*LLAMA[:2], {**FIELDS, "tie_word_embeddings": tied}))
    model.save_pretrained(folder, max_shard_size="50KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    return model


def locations(path):
    """The files to which a model refers."""
    graph = onnx.load(path, load_external_data=False).graph
    entries = (entry for one in graph.initializer for entry in one.external_data)
    return {entry.value for entry in entries if entry.key == "location"}


def linked_bytes(path):
    """The bytes of weights that are in these files."""
    graph = onnx.load(path, load_external_data=False).graph
    entries = (entry for one in graph.initializer for entry in one.external_data)
    return sum(int(entry.value) for entry in entries if entry.key == "length")


@pytest.mark.parametrize("tied", [False, True])
def test_shards_and_tied_weights(tied, tmp_path):
    model = saved(tmp_path / "source", tied)
    pt2onnx.hf.export(tmp_path / "source", tmp_path / "files", verbose=False)
    pt2onnx.hf.export(model, tmp_path / "memory", verbose=False)
    made = [onnx.load(tmp_path / name / "model.onnx") for name in ("files", "memory")]
    assert made[0].graph.initializer == made[1].graph.initializer
    assert_tokens(model, tmp_path / "files")


@pytest.mark.parametrize("tied", [False, True])
def test_a_model_in_the_folder_refers_to_its_files(tied, tmp_path):
    model = saved(tmp_path, tied)
    before = {path: path.stat().st_ino for path in tmp_path.glob("*.safetensors")}
    pt2onnx.hf.export(tmp_path, tmp_path, weights="link", verbose=False)
    assert locations(tmp_path / "model.onnx") <= {path.name for path in before}
    assert linked_bytes(tmp_path / "model.onnx") > 90_000
    after = {path: path.stat() for path in tmp_path.glob("*.safetensors")}
    assert before == {path: one.st_ino for path, one in after.items()}
    assert {one.st_nlink for one in after.values()} == {1}
    assert not list(tmp_path.glob("*.data"))
    assert_tokens(model, tmp_path)


def test_a_model_elsewhere_refers_to_files_outside_if_it_may(tmp_path):
    saved(tmp_path / "source", True)
    with pytest.raises(pt2onnx.OnnxExporterError, match="is not in the folder of the model"):
        pt2onnx.hf.export(tmp_path / "source", tmp_path / "out", weights="link", verbose=False)
    assert not (tmp_path / "out").exists()
    options = {"weights": "link", "allow_external_paths": True, "verbose": False}
    pt2onnx.hf.export(tmp_path / "source", tmp_path / "out", **options)
    found = locations(tmp_path / "out" / "model.onnx")
    assert found and {Path(one).parent.as_posix() for one in found} == {"../source"}
    assert all((tmp_path / "out" / one).exists() for one in found)


def test_weights_that_are_not_as_in_a_file_are_not_linked(tmp_path):
    saved(tmp_path, False)
    # Transformers casts them at loading.
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "dtype": "float16"}))
    pt2onnx.hf.export(tmp_path, tmp_path, weights="link", verbose=False)
    assert locations(tmp_path / "model.onnx") == set()


def _cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize(
    ("file", "damage", "text"),
    [
        ("model-00002*", Path.unlink, "model-00002-of-[0-9]+.safetensors is missing, which "),
        ("model-00002*", lambda path: _cut(path, 3), "model-00002.* was cut off"),
        ("model-00002*", lambda path: _cut(path, -3), "model-00002.* was cut off"),
        ("config.json", lambda path: _cut(path, 40), "config.json is damaged"),
        ("*.index.json", lambda path: _cut(path, 40), "index.json is damaged"),
    ],
)
def test_a_file_that_is_missing_or_damaged_is_named(file, damage, text, tmp_path):
    saved(tmp_path / "source", False)
    damage(next((tmp_path / "source").glob(file)))
    with pytest.raises(ValueError, match=text):
        pt2onnx.hf.export(tmp_path / "source", tmp_path / "out", verbose=False)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


_FULL = """
import resource, sys
import pt2onnx

model = sys.argv[1]
# Files of more bytes cannot be written: as on a disk that is full.
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
from pt2onnx.hf.__main__ import main
sys.exit(main([model, sys.argv[2], *sys.argv[4:]]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the sizes of files")
@pytest.mark.parametrize(
    ("limit", "options"),
    [
        (30_000, []),
        (100_000, ["--weights", "external"]),
        (3_000, ["--quantize", "int4"]),
        (100_000, ["--layout", "transformers.js"]),
    ],
)
def test_a_full_disk_leaves_the_folder_as_it_was(limit, options, tmp_path):
    saved(tmp_path / "source", False)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.onnx").write_text("old")
    package = str(Path(pt2onnx.__file__).parents[1])
    given = [str(tmp_path / "source"), str(tmp_path / "out"), str(limit), *options]
    done = subprocess.run(
        [sys.executable, "-c", _FULL, *given],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.returncode == 1 and len(errors) == 1, done.stderr
    assert "too large" in errors[0].lower() and "Traceback" not in done.stderr, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["model.onnx"]
    assert (tmp_path / "out" / "model.onnx").read_text() == "old"


_SCRIPT = """
import sys, threading, pathlib
import pt2onnx

def watch():
    while not done.wait(0.01):
        text = pathlib.Path("/proc/self/status").read_text()
        peak[0] = max(peak[0], int(text.split("RssAnon:")[1].split()[0]))

done, peak = threading.Event(), [0]
thread = threading.Thread(target=watch)
thread.start()
pt2onnx.hf.export(sys.argv[1], sys.argv[1], weights="link", verbose=False)
done.set()
thread.join()
print(peak[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_weights_take_no_memory(tmp_path):
    fields = {**FIELDS, "hidden_size": 4096, "intermediate_size": 32768, "torch_dtype": "float16"}
    config = transformers.LlamaConfig(**fields, architectures=["LlamaForCausalLM"])
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).half()
    model.config.save_pretrained(tmp_path)
    size, header = 0, {"__metadata__": {"format": "pt"}}
    for name, tensor in model.state_dict().items():
        end = size + 2 * tensor.numel()
        header[name] = {"dtype": "F16", "shape": [*tensor.shape], "data_offsets": [size, end]}
        size = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(tmp_path / "model.safetensors", "wb") as file:
        # Its weights are holes.
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(file.tell() + size)
    assert size > 1.5e9
    package = str(Path(pt2onnx.__file__).parents[1])
    command = [sys.executable, "-c", _SCRIPT, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": package}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert locations(tmp_path / "model.onnx") == {"model.safetensors"}
    assert int(done.stdout.split()[-1]) * 1024 < 1.2e9
