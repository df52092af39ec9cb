"""Models that cannot be written: an error says so, and what was there stays."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import unittest

import pt2onnx
import support


class Writing(support.Test):
    def programs(self) -> list[pt2onnx.ONNXProgram]:
        """A program that Rust writes, and one that onnx_ir writes."""
        made = [pt2onnx.convert(support.MLP)]
        if importlib.util.find_spec("onnx_ir"):
            made.append(pt2onnx.convert(support.MLP))
            self.assertTrue(made[1].model)
        return made

    def refused(self, made: pt2onnx.ONNXProgram, path: object, **options: object) -> None:
        error = self.raised(pt2onnx.OnnxExporterError, lambda: made.save(path, **options))
        self.assertEqual(error.kind, "output")
        self.assertIn(os.path.dirname(path), str(error))

    @unittest.skipUnless(hasattr(os, "mkfifo"), "needs pipes")
    def test_pipe(self) -> None:
        """A model goes to a stream whole, and the stream stays one."""
        import threading

        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for made in self.programs():
            read: list[bytes] = []
            reader = threading.Thread(target=lambda read=read: read.append(pipe.read_bytes()))
            reader.start()
            made.save(pipe)
            reader.join(60)
            self.assertEqual(pt2onnx.diff(read[0], made), "")
            self.assertTrue(pipe.is_fifo())

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_full(self) -> None:
        for made in self.programs():
            self.refused(made, "/dev/full")
            self.assertTrue(pathlib.Path("/dev/full").is_char_device())
        link = self.folder / "model.onnx"
        link.symlink_to("/dev/full")
        for made in self.programs():
            self.refused(made, link)
            self.assertEqual(self.files(), ["model.onnx"])

    def test_no_folder(self) -> None:
        for made in self.programs():
            for external in (True, False):
                self.refused(made, self.folder / "nowhere/model.onnx", external_data=external)
        self.assertEqual(self.files(), [])

    def test_folder(self) -> None:
        path = self.folder / "model.onnx"
        path.mkdir()
        for made in self.programs():
            for external in (True, False):
                self.refused(made, path, external_data=external)
        self.assertEqual(self.files(), ["model.onnx"])
        self.assertEqual(list(path.iterdir()), [])

    @unittest.skipIf(not hasattr(os, "geteuid") or os.geteuid() == 0, "root may write anywhere")
    def test_read_only_folder(self) -> None:
        path = self.folder / "model.onnx"
        path.write_text("kept")
        self.folder.chmod(0o500)
        self.addCleanup(self.folder.chmod, 0o700)
        for made in self.programs():
            self.refused(made, path)
        self.assertEqual((self.files(), path.read_text()), (["model.onnx"], "kept"))

    @unittest.skipUnless(hasattr(os, "fork"), "needs limits of a process")
    def test_disk_becomes_full(self) -> None:
        """The limit of a file's size stands for a full disk: it is met in the middle of a file."""
        for ir in ("", "made.model;" if importlib.util.find_spec("onnx_ir") else ""):
            for external in (True, False):
                path = self.folder / "model.onnx"
                path.write_text("kept")
                code = (
                    "import resource, signal, sys, pt2onnx\n"
                    f"made = pt2onnx.convert({os.fspath(support.MLP)!r}); {ir}\n"
                    "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
                    "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
                    "try:\n"
                    f"    made.save({os.fspath(path)!r}, external_data={external})\n"
                    "except pt2onnx.OnnxExporterError as error:\n"
                    "    print(error.kind)\n"
                )
                ran = support.python("-c", code)
                self.assertEqual(ran.stdout, "output\n", ran.stderr)
                self.assertEqual((self.files(), path.read_text()), (["model.onnx"], "kept"))

    def test_convert_to_its_own_archive(self) -> None:
        path = self.folder / "model.pt2"
        data = support.MLP.read_bytes()
        path.write_bytes(data)
        error = self.raised(pt2onnx.OnnxExporterError, lambda: pt2onnx.convert(path, path))
        self.assertIn("overwrite", str(error))
        self.assertEqual(path.read_bytes(), data)

    def test_replaces(self) -> None:
        path = self.folder / "model.onnx"
        for made in self.programs():
            path.write_text("old")
            made.save(path)
            self.assertEqual(pt2onnx.diff(path, made), "")

    def test_link(self) -> None:
        """A link stays one, and what it points to is replaced."""
        (self.folder / "there").mkdir()
        target, link = self.folder / "there/model.onnx", self.folder / "model.onnx"
        target.write_text("old")
        link.symlink_to(target)
        for made in self.programs():
            made.save(link)
            self.assertTrue(link.is_symlink())
            self.assertEqual(pt2onnx.diff(target, made), "")
