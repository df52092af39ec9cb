"""The package: what importing it imports, its names, and the command."""

from __future__ import annotations

import json
import pathlib

import pt2onnx
import support


class Import(support.Test):
    def loaded(self, code: str) -> set[str]:
        """Packages that are loaded after this code."""
        ran = support.python(
            "-c", f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
        )
        self.assertEqual(ran.stderr, "")
        return set(ran.stdout.split())

    def test_imports_nothing_else(self) -> None:
        others = {
            "torch",
            "numpy",
            "onnx",
            "onnx_ir",
            "onnxruntime",
            "onnxscript",
            "inspect",
            "typing_extensions",
        }
        self.assertEqual(self.loaded("import pt2onnx") & others, set())
        self.assertEqual(
            self.loaded("import pt2onnx; assert callable(pt2onnx.convert)")
            & (others - {"inspect"}),
            set(),
        )

    def test_converting_needs_nothing(self) -> None:
        """Neither PyTorch nor NumPy nor onnx."""
        path = self.folder / "model.onnx"
        archive, model = repr(str(support.MLP)), repr(str(path))
        code = (
            f"import pt2onnx; pt2onnx.convert({archive}, {model}); pt2onnx.check({archive}); "
            f"pt2onnx.load({model}).to_text()"
        )
        self.assertEqual(
            self.loaded(code) & {"torch", "numpy", "onnx", "onnx_ir", "onnxruntime"}, set()
        )
        self.assertTrue(path.exists())

    def test_names(self) -> None:
        for name in (*pt2onnx.__all__, "compat"):
            self.assertTrue(hasattr(pt2onnx, name), name)
            self.assertIn(name, dir(pt2onnx))
        error = self.raised(AttributeError, lambda: pt2onnx.nothing)
        self.assertIn("nothing", str(error))

    def test_docstrings(self) -> None:
        for name in pt2onnx.__all__:
            if name != "__version__":
                self.assertTrue(getattr(pt2onnx, name).__doc__, name)
        for name, member in vars(pt2onnx.ONNXProgram).items():
            if not name.startswith("_"):
                self.assertTrue(member.__doc__, name)


class Command(support.Test):
    def command(self, *words: object) -> tuple[int, str, str]:
        ran = support.python("-m", "pt2onnx", *map(str, words))
        return ran.returncode, ran.stdout, ran.stderr

    def test_converts(self) -> None:
        path = self.folder / "model.onnx"
        code, _, _ = self.command(support.MLP, "-o", path)
        self.assertEqual(code, 0)
        self.assertEqual(pt2onnx.diff(path, pt2onnx.convert(support.MLP)), "")

    def test_exit_codes(self) -> None:
        self.assertEqual(self.command("--version")[:2], (0, f"pt2onnx {pt2onnx.__version__}\n"))
        self.assertEqual(self.command("--nothing")[0], 2)
        self.assertEqual(self.command()[0], 2)
        self.assertEqual(
            self.command(self.folder / "nothing.pt2", "-o", self.folder / "m.onnx")[0], 3
        )
        code, _, text = self.command(
            support.case("custom/mylib_mix").archive, "-o", self.folder / "m.onnx"
        )
        self.assertEqual(code, 4)
        self.assertIn("mylib", text)
        self.assertEqual(self.command(support.MLP, "-o", self.folder / "nowhere/m.onnx")[0], 5)
        self.assertEqual(self.files(), [])

    def test_other_commands(self) -> None:
        code, text, _ = self.command("inspect", support.MLP, "--json")
        self.assertEqual((code, json.loads(text)["program"]["nodes"]), (0, 10))
        self.assertEqual(self.command("check", support.MLP)[0], 0)
        self.assertIn("pt2onnx", self.command("--help")[1])

    def test_standard_input_and_output(self) -> None:
        """A model goes to a stream whole."""
        code, _, _ = self.command(support.MLP, "-o", self.folder / "a.onnx")
        with open(self.folder / "b.onnx", "wb") as out:
            import subprocess
            import sys

            environment = {"PYTHONPATH": str(support.PACKAGE)}
            words = [sys.executable, "-m", "pt2onnx", str(support.MLP), "-o", "-"]
            self.assertEqual(
                subprocess.run(words, env=environment, stdout=out, check=False).returncode, code
            )
        self.assertEqual(
            pathlib.Path(self.folder / "a.onnx").read_bytes(), (self.folder / "b.onnx").read_bytes()
        )
