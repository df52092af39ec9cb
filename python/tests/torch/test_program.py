"""``ONNXProgram`` of an export: all that ``torch.onnx.ONNXProgram`` has; fake mode;
verification."""

from __future__ import annotations

import pathlib
import warnings
from typing import Any

import onnx
import onnx_ir
import onnxruntime as ort
import pt2onnx
import pytest
import torch
from helpers import Call, check, same, since


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


X = torch.randn(2, 64)


def made(**options: Any) -> tuple[Net, pt2onnx.ONNXProgram]:
    model = Net().eval()
    return model, pt2onnx.export(model, (X,), **options)


def test_all_of_torch_onnx() -> None:
    import torch.onnx as theirs

    _, program = made()
    names = {name for name in dir(theirs.ONNXProgram) if not name.startswith("_")}
    assert {name for name in names if not hasattr(program, name)} == set()
    import inspect

    for name in names:
        other = getattr(theirs.ONNXProgram, name)
        if callable(other):
            ours = inspect.signature(getattr(pt2onnx.ONNXProgram, name)).parameters
            assert set(inspect.signature(other).parameters) - {"args"} <= set(ours) | {"args"}, name


@since(2, 15)
def test_all_parameters_of_torch_onnx() -> None:
    import inspect

    theirs, ours = (
        inspect.signature(torch.onnx.export).parameters,
        inspect.signature(pt2onnx.export).parameters,
    )
    assert set(theirs) - set(ours) == set()
    for name, parameter in theirs.items():
        # Without `external_data`, dynamo=True writes a second file and dynamo=False does not, as in
        # torch.
        if name not in ("training", "operator_export_type", "external_data"):
            assert parameter.default == ours[name].default, name


def test_attributes() -> None:
    model, program = made()
    assert isinstance(program.model, onnx_ir.Model)
    assert isinstance(program.model_proto, onnx.ModelProto)
    assert isinstance(program.exported_program, torch.export.ExportedProgram)
    onnx.checker.check_model(program.model_proto, full_check=True)
    same(program(X), model(X))
    same(program.call_reference(X), model(X))
    name = program.model.graph[0].outputs[0].name
    assert name is not None
    same(program.compute_values([name], (X,))[0], model.linear(X))
    same(program.compute_values([name], [X], {})[0], model.linear(X))
    with pytest.raises(ValueError, match="nothing"):
        program.compute_values(["nothing"], (X,))


def test_results_are_tensors() -> None:
    _, program = made()
    assert isinstance(program(X)[0], torch.Tensor)
    assert isinstance(program(X.numpy())[0], type(X.numpy()))
    module = Call(lambda x: x.new_zeros(2, dtype=torch.bfloat16))
    zeros = pt2onnx.export(module, (X,), dynamo=False)
    assert not zeros.input_names and isinstance(zeros(X)[0], torch.Tensor)


def test_own_session() -> None:
    model, program = made()
    seen = []

    def session(given: Any) -> ort.InferenceSession:
        seen.append(given)
        return ort.InferenceSession(given, providers=["CPUExecutionProvider"])

    program.initialize_inference_session(session)
    same(program(X), model(X))
    assert len(seen) == 1
    program.release()
    same(program(X), model(X))


def test_changed_model() -> None:
    model, program = made()
    program.model.graph.outputs[0].name = "y"
    program.model.doc_string = "changed"
    assert program.output_names == ["y"]
    assert program.model_proto.doc_string == "changed"
    same(program(X), model(X))


def test_apply_weights(tmp_path: pathlib.Path) -> None:
    _, program = made()
    other = Net().eval()
    program.apply_weights(other.state_dict())
    same(program(X), other(X))
    program.save(tmp_path / "m.onnx")
    same(pt2onnx.load(tmp_path / "m.onnx")(X), other(X))
    third = Net().eval()
    assert program.model
    program.apply_weights(third.state_dict())
    same(program(X), third(X))


def test_fake_mode(tmp_path: pathlib.Path) -> None:
    with pt2onnx.compat.enable_fake_mode():
        fake, x = Net().eval(), torch.randn(2, 64)
        program = pt2onnx.export(fake, (x,))
    real = Net().eval()
    program.apply_weights(real.state_dict())
    same(program(X), real(X))
    program.save(tmp_path / "m.onnx", external_data=True)
    same(pt2onnx.load(tmp_path / "m.onnx")(X), real(X))


def test_fake_mode_of_torch() -> None:
    """Fake weights, real arguments."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake, x = Net().eval(), torch.randn(2, 64)
        exported = torch.export.export(fake, (x,))
    program = pt2onnx.export(exported)
    real = Net().eval()
    program.apply_weights(real.state_dict())
    same(program(X), real(X))


def test_verified() -> None:
    model = Net().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = pt2onnx.export(model, (X,), verify=True, dynamic_shapes={"x": {0: "batch"}})
    found = program.verification
    assert found is not None and found.ok
    assert next(output.inputs for output in found.outputs) == "given"
    # At a second size of the dynamic dimension.
    assert len(found.outputs) == 2
    assert "equal" in str(found)
    assert program.verify(model, (X,)).ok


def test_differences() -> None:
    model = Net().eval()
    program = pt2onnx.export(Net().eval(), (X,))
    found = program.verify(model, (X,))
    assert not found.ok
    (output,) = found.outputs
    assert (
        output.max_abs_diff > 0
        and output.problem is not None
        and "elements differ" in output.problem
    )


def test_wrong_translations_are_found() -> None:
    """Numbers, types and places of NaN."""
    x = torch.tensor([1.0, -1.0])
    table = {"aten::relu": lambda cx, x: cx.neg(x)}
    with pytest.warns(UserWarning, match="2 of 2 elements differ"):
        program = pt2onnx.export(
            Call(torch.relu), (x,), verify=True, custom_translation_table=table
        )
    assert program.verification is not None and not program.verification.ok
    table = {"aten::relu": lambda cx, x: cx.log(x)}
    with pytest.warns(UserWarning, match="elements differ"):
        pt2onnx.export(Call(torch.relu), (x,), verify=True, custom_translation_table=table)


def test_nan_and_infinities() -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0])
    program = pt2onnx.export(Call(lambda x: x * 2), (x,), verify=True)
    assert program.verification is not None and program.verification.ok


def test_verification_with_mutation() -> None:
    """Neither the module's buffers nor the arguments are changed by the comparison."""

    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls.add_(1)
            x.mul_(2)
            return x + self.calls

    model, x = Counter().eval(), torch.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = pt2onnx.export(model, (x,), verify=True)
    assert program.verification is not None and program.verification.ok, program.verification
    assert (model.calls.item(), x.tolist()) == (0, [1, 1])


def test_verification_of_program() -> None:
    exported = torch.export.export(Net().eval(), (X,))
    program = pt2onnx.export(exported, verify=True)
    assert program.verification is not None and program.verification.ok


def test_verification_without_kernels() -> None:
    """ONNX Runtime cannot run it: a warning, and a model."""
    model = Call(lambda x: x * 2)
    table = {"aten::mul.Tensor": lambda cx, x, y: cx.emit("Foo", x, domain="my")}
    with pytest.warns(UserWarning, match="ONNX Runtime"):
        program = pt2onnx.export(model, (X,), verify=True, custom_translation_table=table)
    assert program.verification is None


def test_keywords_are_verified() -> None:
    model = Call(lambda x, y: x - y)
    model.forward = lambda x, *, y: x - y  # type: ignore[method-assign]

    class Minus(torch.nn.Module):
        def forward(self, x: torch.Tensor, *, y: torch.Tensor) -> torch.Tensor:
            return x - y

    program = pt2onnx.export(Minus(), (X,), kwargs={"y": X * 3}, verify=True)
    assert program.verification is not None and program.verification.ok


def test_large_model_is_not_copied() -> None:
    """A session of a model with 256 MiB of weights, without files and copies."""
    model = torch.nn.Linear(8192, 8192, bias=False).eval()
    program = check(model, (torch.randn(1, 8192),), optimize=False)
    assert program._backend.weight_bytes == 8192 * 8192 * 4


class Zeroed(torch.nn.Module):
    def forward(self, z: torch.Tensor) -> torch.Tensor:
        z.zero_()
        return torch.sigmoid(z)


def test_verify_a_model_without_inputs_in_bfloat16() -> None:
    """ONNX Runtime's results are arrays of a type that NumPy lacks."""
    z = torch.zeros(2, 0, dtype=torch.bfloat16)
    pt2onnx.export(Zeroed(), (z,), dynamo=False, verify=True)
