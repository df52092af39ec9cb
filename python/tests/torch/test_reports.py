"""Messages and files beside the model: steps, reports, profiles, programs; captures that fail."""

from __future__ import annotations

import pathlib
import sys
import warnings
from typing import Any

import pt2onnx
import pytest
import torch
from helpers import Call, same


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Uncapturable(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # torch.jit.script does not take this, and a trace only for one value.
        if max([float(x.sum())], key=lambda total: total) > 0:
            return x + 1
        return x - 1


X = torch.randn(2, 4)


def files(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_silent(capfd: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    pt2onnx.export(Net().eval(), (X,), tmp_path / "m.onnx")
    pt2onnx.export(Net().eval(), (X,), verbose=False)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_verbose(capfd: pytest.CaptureFixture[str]) -> None:
    pt2onnx.export(Net().eval(), (X,), verbose=True, verify=True)
    out = capfd.readouterr().out
    assert (
        "[pt2onnx] Obtain model graph for `Net([...]` with "
        "`torch.export.export(..., strict=False)`... ✅" in out
    )
    assert "Translate the graph into ONNX... ✅" in out
    assert "Verify output accuracy... ✅" in out


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", terminal)
    pt2onnx.export(Net().eval(), (X,))
    assert "capture" in terminal.getvalue()
    # The line is gone at the end.
    assert terminal.getvalue().endswith("\r\x1b[K")


class Branch(torch.nn.Module):
    """Only a script of it is right for all arguments: torch.export logs why it fails."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x * 2
        return x * 3


class Talks(torch.nn.Module):
    """Prints and warns."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("talks")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return x * 2


@pytest.mark.parametrize("options", [{}, {"dynamo": False}, {"fallback": True}], ids=str)
def test_attempts_that_fail_are_silent(
    options: dict[str, Any],
    capfd: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
    tmp_path: pathlib.Path,
) -> None:
    """Their logs are in the report."""
    filters, showwarning, out = warnings.filters, warnings.showwarning, sys.stdout
    program = pt2onnx.export(Branch().eval(), (X,), report=True, artifacts_dir=tmp_path, **options)
    same(program(X), Branch()(X))
    captured = capfd.readouterr()
    (line,) = captured.out.splitlines()
    assert line.startswith("[pt2onnx] Export report has been saved to") and captured.err == ""
    assert [str(one.message) for one in recwarn if "deprecated" not in str(one.message)] == []
    assert warnings.filters is filters and warnings.showwarning is showwarning
    assert sys.stdout is out
    if not options:
        (name,) = files(tmp_path)
        text = (tmp_path / name).read_text()
        assert "### TorchExportNonStrictStrategy" in text and "def forward(self, arg0_1" in text


def test_user_prints_and_warnings_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(DeprecationWarning, match="old"):
        pt2onnx.export(Talks(), (X,))
    captured = capfd.readouterr()
    assert captured.out == "talks\n" and captured.err == ""


def test_warnings_of_traces_are_in_the_report(tmp_path: pathlib.Path) -> None:
    pt2onnx.export(Talks().eval(), (X,), dynamo=False, report=True, artifacts_dir=tmp_path)
    (name,) = files(tmp_path)
    assert "DeprecationWarning: old" in (tmp_path / name).read_text()


def test_errors_are_short(capfd: pytest.CaptureFixture[str]) -> None:
    """The likely cause with its line, and what to do."""

    class Counts(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            order = sorted(range(int(x.sum()) % 3 + 1), key=lambda i: -i)
            return torch.stack([x[0] * i for i in order])

    for _ in range(2):
        with pytest.raises(pt2onnx.TorchExportError) as caught:
            pt2onnx.export(Counts(), (X,))
        lines = str(caught.value).splitlines()
        assert len(lines) <= 10
        (cause,) = (line for line in lines if "likely cause" in line)
        assert "test_reports.py:" in cause and "order = sorted(" in cause
        assert "`dynamo=False`" in lines[-1]
        captured = capfd.readouterr()
        assert captured.out == captured.err == ""


@pytest.mark.parametrize("dynamo", [True, False])
def test_backward_in_forward(dynamo: bool) -> None:
    """The error has the line, and a function that captures follow."""

    class Slope(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x.detach().clone().requires_grad_(True)
            with torch.enable_grad():
                self.linear(x).square().sum().backward()
            assert x.grad is not None
            return x.grad

    with pytest.raises(pt2onnx.TorchExportError) as caught:
        pt2onnx.export(Slope().eval(), (torch.rand(2, 4),), dynamo=dynamo)
    text = str(caught.value)
    assert "self.linear(x).square().sum().backward()`" in text
    assert "torch.autograd.grad" in text.splitlines()[-1]


def test_report(tmp_path: pathlib.Path) -> None:
    program = pt2onnx.export(Net().eval(), (X,), report=True, artifacts_dir=tmp_path / "made")
    (name,) = files(tmp_path / "made")
    assert name.startswith("onnx_export_") and name.endswith("_success.md")
    text = (tmp_path / "made" / name).read_text()
    assert "aten::linear" in text
    assert "Profile" not in text
    assert program.report["success"]


def test_report_with_profile_and_verification(tmp_path: pathlib.Path) -> None:
    pt2onnx.export(
        Net().eval(), (X,), report=True, profile=True, verify=True, artifacts_dir=tmp_path
    )
    (name,) = files(tmp_path)
    text = (tmp_path / name).read_text()
    assert "## Profile" in text and "| capture |" in text
    assert "## Verification" in text and "equal within tolerance" in text


def test_profile(
    capfd: pytest.CaptureFixture[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pt2onnx.export(Net().eval(), (X,), profile=True)
    assert "| translate |" in capfd.readouterr().out
    assert files(tmp_path) == []


def test_dump(tmp_path: pathlib.Path) -> None:
    model = Net().eval()
    pt2onnx.export(model, (X,), dump_exported_program=True, artifacts_dir=tmp_path)
    (name,) = files(tmp_path)
    assert name.endswith(".pt2")
    same(torch.export.load(tmp_path / name).module()(X), model(X))
    same(pt2onnx.convert(tmp_path / name)(X), model(X))


def test_report_of_differences(tmp_path: pathlib.Path) -> None:
    table = {"aten::relu": lambda cx, x: cx.neg(x)}
    with pytest.warns(UserWarning, match="differ"):
        pt2onnx.export(
            Call(torch.relu),
            (X,),
            verify=True,
            report=True,
            artifacts_dir=tmp_path,
            custom_translation_table=table,
        )
    (name,) = files(tmp_path)
    assert name.endswith("_accuracy.md")


def test_no_capture(tmp_path: pathlib.Path) -> None:
    """The error and the report list each strategy that was tried."""
    with pytest.raises(pt2onnx.TorchExportError) as caught:
        pt2onnx.export(Uncapturable(), (X,), report=True, artifacts_dir=tmp_path)
    error = caught.value
    assert isinstance(error, torch.onnx.OnnxExporterError)
    assert isinstance(error, pt2onnx.OnnxExporterError)
    ways = [
        "TorchExportNonStrictStrategy",
        "TorchExportStrictStrategy",
        "TraceStrategy",
        "ScriptStrategy",
    ]
    assert list(error.failures_by_strategy) == ways
    assert all(name in str(error) for name in error.failures_by_strategy)
    assert error.__cause__ is error.failures_by_strategy["TorchExportNonStrictStrategy"]
    (name,) = files(tmp_path)
    assert name.endswith("_pt_export.md")
    text = (tmp_path / name).read_text()
    assert all(f"### {strategy}" in text for strategy in error.failures_by_strategy)
    assert name in "".join(error.__notes__)


def test_second_capture(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The strict way gives a program where the other fails."""
    original = torch.export.export

    def export(*args: Any, strict: bool = True, **kwargs: Any) -> Any:
        if not strict:
            raise ValueError("not this way")
        return original(*args, strict=strict, **kwargs)

    monkeypatch.setattr(torch.export, "export", export)
    model = Net().eval()
    program = pt2onnx.export(model, (X,), report=True, artifacts_dir=tmp_path, verbose=True)
    same(program(X), model(X))
    (name,) = files(tmp_path)
    text = (tmp_path / name).read_text()
    assert "### TorchExportNonStrictStrategy" in text and "not this way" in text
    out = capfd.readouterr().out
    assert "strict=False)`... ❌" in out and "strict=True)`... ✅" in out


def test_no_translation(tmp_path: pathlib.Path) -> None:
    with pytest.raises(pt2onnx.ConversionError) as caught:
        pt2onnx.export(
            Net().eval(),
            (X,),
            report=True,
            artifacts_dir=tmp_path,
            custom_translation_table={"aten::linear": lambda x: x},
        )
    (name,) = files(tmp_path)
    assert name.endswith("_conversion.md")
    assert "aten::linear" in (tmp_path / name).read_text()
    assert name in "".join(caught.value.__notes__)


def test_no_report_of_success_or_failure(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pt2onnx.export(Net().eval(), (X,))
    with pytest.raises(pt2onnx.OnnxExporterError):
        pt2onnx.export(Uncapturable(), (X,))
    assert files(tmp_path) == []


def test_errors_of_the_model() -> None:
    """An error within the model is the cause, with its place."""

    class Wrong(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(7)

    with pytest.raises(pt2onnx.TorchExportError, match=r"reshape|shape") as caught:
        pt2onnx.export(Wrong(), (X,))
    assert caught.value.__cause__ is not None


def test_not_written(tmp_path: pathlib.Path) -> None:
    with pytest.raises(pt2onnx.OnnxExporterError) as caught:
        pt2onnx.export(Net().eval(), (X,), tmp_path / "nowhere/m.onnx")
    assert caught.value.kind == "output"
    assert files(tmp_path) == []


def test_wrong_arguments() -> None:
    for args in ((), (X, X)):
        with pytest.raises(pt2onnx.OnnxExporterError):
            pt2onnx.export(Net(), args)


class Transformed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.func.jacrev(lambda row: row.sin() if row.sum() > 0 else row)(x[0])


def test_errors_are_of_this_package() -> None:
    """The error of PyTorch's serialiser is the cause of an error of this package; PyTorch's own
    state is as before."""
    with pytest.raises(
        pt2onnx.OnnxExporterError,
        match=r"cannot be translated|cannot capture|no values of constants",
    ):
        pt2onnx.export(Transformed().eval(), (torch.randn(3, 4),))
    assert type(torch.ones(2) + 1) is torch.Tensor and (torch.ones(2) + 1).sum().item() == 4
    peek = getattr(torch._C._functorch, "peek_interpreter_stack", lambda: None)
    assert peek() is None


def test_programs_that_torch_cannot_serialise(monkeypatch: pytest.MonkeyPatch) -> None:
    from pt2onnx import _serialize

    def fails(_: Any) -> bytes:
        raise KeyError("unknown")

    monkeypatch.setattr(_serialize, "program_json", fails)
    exported = torch.export.export(torch.nn.ReLU(), (torch.randn(2),))
    with pytest.raises(pt2onnx.ConversionError, match="KeyError") as raised:
        pt2onnx.export(exported)
    assert isinstance(raised.value.__cause__, KeyError) and isinstance(
        raised.value, torch.onnx.OnnxExporterError
    )
    # A script is another way.
    assert pt2onnx.export(torch.nn.ReLU(), (torch.randn(2),))._capture_strategy == "TraceStrategy"
