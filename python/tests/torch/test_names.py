"""Names of inputs, outputs and dimensions; dynamic shapes in all their forms."""

from __future__ import annotations

import warnings
from typing import Any

import pt2onnx
import pytest
import torch
from helpers import Call, check, dims, same, since
from torch.export import Dim


class Add(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, y * 2], dim=1)


ARGS = torch.randn(2, 3), torch.randn(2, 4)
OTHERS = [
    (torch.randn(5, 3), torch.randn(5, 4)),
    (torch.randn(1, 3), torch.randn(1, 4)),
    (torch.randn(0, 3), torch.randn(0, 4)),
]


def test_names() -> None:
    program = check(Add(), ARGS, input_names=["a", "b"], output_names=["c"])
    assert (program.input_names, program.output_names) == (["a", "b"], ["c"])
    assert check(Add(), ARGS).input_names == ["x", "y"]


def test_surplus_names() -> None:
    with pytest.warns(UserWarning, match="3 input_names") as seen:
        program = pt2onnx.export(Add(), ARGS, input_names=["a", "b", "c"])
    assert program.input_names == ["a", "b"]
    assert seen[0].filename == __file__
    assert pt2onnx.export(Add(), ARGS, input_names=["a"]).input_names == ["a", "y"]
    with pytest.warns(UserWarning, match="2 output_names, but the model has 1 output"):
        assert pt2onnx.export(Add(), ARGS, output_names=["a", "b"]).output_names == ["a"]


def test_names_twice() -> None:
    for names in ({"input_names": ["a", "a"]}, {"output_names": ["a", "a"]}):
        with pytest.raises(ValueError, match="duplicated"):
            pt2onnx.export(Add(), ARGS, **names)


def test_same_name_of_input_and_output() -> None:
    with pytest.raises(ValueError, match="`a`"):
        pt2onnx.export(Add(), ARGS, input_names=["a", "b"], output_names=["a"])


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": {0: "batch"}, "y": {0: "batch"}},
        ({0: "batch"}, {0: "batch"}),
        [{0: "batch"}, {0: "batch"}],
        {"x": {0: Dim("batch")}, "y": {0: Dim("batch")}},
        {"x": ("batch", None), "y": ["batch", None]},
        {"x": {0: Dim.DYNAMIC}, "y": {0: Dim.DYNAMIC}},
        {"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}},
        {"x": {0: "batch", 1: Dim.STATIC}, "y": {0: Dim.AUTO}},
    ],
    ids=range(8),
)
def test_forms(shapes: Any) -> None:
    program = check(Add(), ARGS, dynamic_shapes=shapes, others=OTHERS)
    found = dims(program)
    name = found["x"][0]
    assert isinstance(name, str)
    if "batch" in str(shapes):
        assert name == "batch"
    assert found["x"] == [name, 3] and found["y"] == [name, 4]
    assert list(found.values())[2] == [name, 7]


def test_several_dims() -> None:
    program = check(
        Call(lambda x, y: torch.cat([x, y], 1).flatten(1)),
        (torch.randn(2, 3, 5), torch.randn(2, 4, 5)),
        dynamic_shapes=(({0: "batch", 1: "past"}, {0: "batch", 1: "now"}),),
        others=[(torch.randn(3, 1, 5), torch.randn(3, 9, 5))],
    )
    found = list(dims(program).values())
    assert found[:2] == [["batch", "past", 5], ["batch", "now", 5]]
    assert {"past", "now"} <= set(
        str(found[2][1])
        .replace("*", " ")
        .replace("+", " ")
        .replace("(", " ")
        .replace(")", " ")
        .split()
    )


def test_derived_dim() -> None:
    n = Dim("n", min=2, max=20)
    program = check(
        Call(lambda x, y: x[:, : y.shape[1]] + y),
        (torch.randn(2, 6), torch.randn(2, 3)),
        dynamic_shapes=(({1: 2 * n}, {1: n}),),
        others=[(torch.randn(2, 8), torch.randn(2, 4))],
    )
    assert list(dims(program).values())[1] == [2, "n"]
    assert next(iter(dims(program).values()))[1] in ("2*n", "2 * n", "n*2")


def test_second_name_of_a_dimension() -> None:
    with pytest.warns(UserWarning, match="rows") as seen:
        program = pt2onnx.export(Add(), ARGS, dynamic_shapes={"x": {0: "batch"}, "y": {0: "rows"}})
    assert seen[0].filename == __file__
    assert dims(program)["x"][0] == dims(program)["y"][0] == "batch"


def test_dimension_that_the_model_fixes() -> None:
    model = Call(lambda x: torch.nn.functional.linear(x, torch.ones(2, 3)))
    program = check(model, (torch.randn(2, 3),), dynamic_shapes=(({0: "n", 1: Dim.AUTO},),))
    given, returned = dims(program).values()
    assert (given[0], returned) == ("n", ["n", 2])


def test_shapes_by_input_names() -> None:
    program = check(
        Add(),
        ARGS,
        input_names=["a", "b"],
        dynamic_shapes={"a": {0: "batch"}, "b": {0: "batch"}},
        others=OTHERS,
    )
    assert dims(program)["a"] == ["batch", 3]


def test_keywords() -> None:
    x, y = ARGS
    program = check(
        Add(),
        (x,),
        {"y": y},
        dynamic_shapes={"x": {0: "batch"}, "y": {0: "batch"}},
        others=[((OTHERS[0][0],), {"y": OTHERS[0][1]})],
    )
    assert dims(program)["y"] == ["batch", 4]


def test_nested() -> None:
    model = Call(lambda d, xs: d["a"] + xs[0] + xs[1])
    a, b, c = (torch.randn(2, 3) for _ in range(3))
    shapes = (({"a": {0: "n"}}, [{0: "n"}, {0: "n"}]),)
    big = torch.randn(7, 3)
    program = check(
        model, ({"a": a}, [b, c]), dynamic_shapes=shapes, others=[({"a": big}, [big, big])]
    )
    assert set(map(tuple, dims(program).values())) == {("n", 3)}


def test_awkward_names_of_dimensions() -> None:
    for name in ("batch size", "a.b", "s0", "3"):
        try:
            program = pt2onnx.export(Add(), ARGS, dynamic_shapes={"x": {0: name}, "y": {0: name}})
        except ValueError as error:
            assert name in str(error)
        else:
            assert dims(program)["x"] == [name, 3]
            same(program(*OTHERS[0]), Add()(*OTHERS[0]))


@pytest.mark.filterwarnings("ignore:# 'dynamic_axes'")
@pytest.mark.parametrize(
    "axes",
    [
        {"x": {0: "batch"}, "y": {0: "batch"}},
        {"x": [0], "y": [0]},
        {"x": {0: "batch"}, "y": {0: "batch"}, "c": {0: "batch"}},
    ],
    ids=range(3),
)
def test_dynamic_axes(axes: Any) -> None:
    program = check(Add(), ARGS, dynamic_axes=axes, output_names=["c"], others=OTHERS)
    assert isinstance(dims(program)["x"][0], str)
    assert dims(program)["c"][0] == dims(program)["x"][0]


@pytest.mark.filterwarnings("ignore:# 'dynamic_axes'")
def test_dynamic_axes_by_input_names() -> None:
    program = check(
        Add(),
        ARGS,
        input_names=["a", "b"],
        output_names=["c"],
        others=OTHERS,
        dynamic_axes={"a": {0: "batch"}, "b": {0: "batch"}, "c": {0: "batch"}},
    )
    assert dims(program) == {"a": ["batch", 3], "b": ["batch", 4], "c": ["batch", 7]}
    with pytest.raises(RuntimeError, match="Failed to convert 'dynamic_axes'"):
        pt2onnx.export(
            Add(), ARGS, input_names=["a", "b"], dynamic_axes={"z": {0: "batch"}, "a": {0: "batch"}}
        )


class Optional(torch.nn.Module):
    def forward(
        self, x: torch.Tensor, y: torch.Tensor | None = None, z: torch.Tensor | None = None
    ) -> torch.Tensor:
        assert y is None and z is not None
        return x + z


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.filterwarnings("ignore:# 'dynamic_axes'")
def test_dynamic_axes_where_an_argument_is_none(dynamo: bool) -> None:
    """It has no name."""
    args = torch.randn(2, 3), None, torch.randn(2, 3)
    axes = {"x": {0: "batch"}, "z": {0: "batch"}}
    program = pt2onnx.export(
        Optional(), args, input_names=["x", "z"], dynamic_axes=axes, dynamo=dynamo
    )
    assert {tuple(sizes) for sizes in dims(program).values()} == {("batch", 3)}


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.filterwarnings("ignore:# 'dynamic_axes'")
def test_dynamic_axes_from_the_last(dynamo: bool) -> None:
    program = check(
        Call(lambda x: x * 2),
        (torch.randn(2, 3, 4),),
        dynamo=dynamo,
        input_names=["x"],
        output_names=["y"],
        dynamic_axes={"x": {-1: "width", 0: "batch"}},
        others=[(torch.randn(3, 3, 5),)],
    )
    assert dims(program) == {"x": ["batch", 3, "width"], "y": ["batch", 3, "width"]}


def test_shapes_by_tensor() -> None:
    """``ShapesCollection`` has the dynamic dimensions of each tensor."""
    shapes = torch.export.ShapesCollection()
    shapes[ARGS[0]] = ("n", None)
    shapes[ARGS[1]] = {0: "n"}
    program = check(Add(), ARGS, dynamic_shapes=shapes, others=OTHERS)
    assert dims(program)["x"] == ["n", 3]


@since(2, 8)
def test_shapes_by_examples() -> None:
    """``AdditionalInputs`` has other arguments: dimensions that differ are dynamic."""
    more = torch.export.AdditionalInputs()
    more.add(OTHERS[0])
    check(Add(), ARGS, dynamic_shapes=more, others=OTHERS)


def test_wrong_dynamic_axes() -> None:
    with (
        pytest.warns(UserWarning, match="dynamic_axes"),
        pytest.raises(RuntimeError, match="dynamic_axes"),
    ):
        pt2onnx.export(Add(), ARGS, dynamic_axes={"x": 3})


def test_from_tree() -> None:
    class Outputs(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return {"logits": x + 1, "hidden": (x * 2, [x * 3])}

    program = check(Outputs(), (torch.randn(2),), output_names="from-tree")
    assert program.output_names == ["logits", "hidden_0", "hidden_1_0"]


def test_from_tree_of_several() -> None:
    program = check(Call(lambda x: (x + 1, x + 2)), (torch.randn(2),), output_names="from-tree")
    assert len(set(program.output_names)) == 2


def test_rename_axes() -> None:
    program = check(Add(), ARGS, dynamic_shapes={"x": {0: Dim.DYNAMIC}, "y": {0: Dim.DYNAMIC}})
    old = dims(program)["x"][0]
    program.rename_axes({old: "batch"})
    assert dims(program)["x"][0] == "batch"
    pytest.importorskip("onnx_ir")
    program.rename_axes({program.model.graph.inputs[0].shape[0]: "rows"})
    assert dims(program)["y"][0] == "rows"


@since(2, 8)
def test_sizes_of_one_stay_dynamic() -> None:
    """Examples of size 1 and 0."""
    model = Call(lambda x: (x + 1, x.sum(0), x.reshape(x.shape[0] * 3)))
    check(
        model,
        (torch.randn(1, 3),),
        dynamic_shapes=(({0: "n"},),),
        others=[(torch.randn(4, 3),), (torch.randn(0, 3),)],
    )


def test_no_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(Add(), ARGS, dynamic_shapes={"x": {0: "batch"}, "y": {0: "batch"}})


def test_fused_nodes_are_at_the_place_of_the_op_of_their_kind() -> None:
    """A convolution with a folded batch norm is in the convolution's module, and lists both."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.bn1 = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.bn1(self.conv1(x)).relu()

    program = check(Net(), (torch.randn(1, 3, 5, 5),))
    node = program.model_proto.graph.node[0]
    properties = {entry.key: entry.value for entry in node.metadata_props}
    assert node.op_type == "Conv"
    assert "/conv1: torch.nn.modules.conv.Conv2d/" in properties["namespace"]
    assert "self._conv_forward" in properties["pkg.torch.onnx.stack_trace"]
    assert properties["pkg.pt2onnx.origins"] == "conv2d, batch_norm"
