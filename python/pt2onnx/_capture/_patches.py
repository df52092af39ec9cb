"""Every change that an export makes to torch while it runs, and how it is undone.

``PATCHES`` has a row for each attribute that is replaced. ``applied`` replaces those of one use.
Torch is shared by all threads, so that callers hold ``LOCK``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any

import torch

#: Held by the thread that captures, or that has changed torch in another way.
LOCK = threading.RLock()


@dataclasses.dataclass(frozen=True)
class Patch:
    """An attribute of torch that is replaced.

    ``use`` is the name of its group, ``target`` a module, or a module and a path in it after a
    colon. An ``attribute`` in brackets is a key of a dict of kernels. ``versions`` are those of
    torch that have it, ``why`` is the reason.
    """

    use: str
    target: str
    attribute: str
    versions: str
    why: str


PATCHES = (
    Patch(
        "exporting",
        "torch.onnx._internal.exporter._flags",
        "_is_onnx_exporting",
        "2.7-",
        "torch.onnx.is_in_onnx_export() is true during an export",
    ),
    Patch(
        "exporting",
        "torch.onnx._globals:GLOBALS",
        "in_onnx_export",
        "2.6",
        "the same",
    ),
    Patch(
        "strict",
        "torch.jit",
        "isinstance",
        "2.6-",
        "Dynamo does not know torch.jit.isinstance; Python's takes the same classes",
    ),
    Patch(
        "strict",
        "torch._dynamo.variables.torch:TorchInGraphFunctionVariable",
        "_get_handlers",
        "2.6-",
        "Dynamo takes the result of torch._shape_as_tensor for a torch.Size",
    ),
    Patch(
        "capture",
        "torch:ops.aten._shape_as_tensor.default",
        "[CompositeImplicitAutograd]",
        "2.6-",
        "torch reads the sizes of tensors without memory as numbers",
    ),
    Patch(
        "capture",
        "torch:ops.aten._reshape_from_tensor.default",
        "[CompositeImplicitAutograd]",
        "2.6-",
        "torch reads the elements of tensors without memory",
    ),
    *(
        Patch(
            "capture",
            f"torch:ops.aten.{name}.input",
            "[CompositeImplicitAutograd]",
            "2.6-",
            "torch decomposes recurrent layers of tensors without memory step by step, which makes "
            "the number of steps static",
        )
        for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    ),
    Patch(
        "indexing",
        "torch._dynamo._trace_wrapped_higher_order_op",
        "mod_index",
        "2.6-",
        "programs in which torch.vmap meets an index by a tensor cannot be serialised",
    ),
    *(
        Patch(
            "guards",
            "torch.fx.experimental.sym_node:SymNode",
            name,
            "2.6-",
            "the log of guards needs all questions about sizes",
        )
        for name in ("guard_bool", "guard_int", "guard_float")
    ),
    Patch(
        "conditions",
        "torch.fx.experimental.symbolic_shapes:ShapeEnv",
        "_log_guard",
        "2.6-",
        "the conditions under which a capture holds are in no result of it",
    ),
    Patch(
        "conditions",
        "torch.fx.experimental.symbolic_shapes:ShapeEnv",
        "create_symbol",
        "2.6-",
        "conditions have symbols, whose inputs are needed also where the capture fails",
    ),
    Patch(
        "serialize",
        "torch._export.serde.serialize",
        "_TORCH_TO_SERIALIZE_DTYPE",
        "2.6-",
        "versions before 2.8 lack element types, none has float4",
    ),
    Patch(
        "serialize",
        "torch._export.serde.serialize",
        "canonicalize",
        "2.6-",
        "its result is a copy for a comparison, which takes most of the time",
    ),
    Patch(
        "serialize",
        "torch._export.serde.serialize",
        "serialize_torch_artifact",
        "2.6-",
        "weights are handed over in memory, without a pickle",
    ),
    Patch(
        "serialize",
        "torch._export.serde.serialize",
        "treespec_dumps",
        "2.6-",
        "containers need no registered name",
    ),
    Patch(
        "serialize",
        "torch._export.serde.serialize",
        "_SYM_OPS",
        "2.6-",
        "torch's serialiser does not know sums of three and more sizes",
    ),
    Patch(
        "serialize",
        "torch._export.serde.serialize",
        "_dataclass_to_dict",
        "2.6-",
        "dicts of all nodes at once are larger than the text",
    ),
    Patch(
        "serialize",
        "torch._export.serde.serialize",
        "json",
        "2.6-",
        "each dataclass becomes a dict when it is written",
    ),
    Patch(
        "serialize",
        "torch._export.serde.serialize:_Union",
        "create",
        "2.6-",
        "each argument is a union, and checks of its class take a third of the time",
    ),
    Patch(
        "serialize",
        "torch._export.serde.serialize:GraphModuleSerializer",
        "serialize_input",
        "2.6-",
        "versions before 2.14 do not know lists of lists of ints, all import Inductor",
    ),
    Patch(
        "serialize",
        "torch._export.serde.serialize:GraphModuleSerializer",
        "serialize_treespec",
        "2.8-",
        "containers need no registered name",
    ),
    Patch(
        "serialize",
        "torch.fx:GraphModule",
        "print_readable",
        "2.6-",
        "the program is printed for a log that nobody reads",
    ),
    Patch(
        "trace",
        "torch.jit._trace",
        "_trace_module_map",
        "2.6-",
        "nodes keep the paths of modules without a ScriptModule of Python for each",
    ),
    Patch(
        "trace",
        "torch.nn:Module",
        "__call__",
        "2.6-",
        "the tracer writes down the stack at each operator, with three frames for each module",
    ),
    *(
        Patch(
            "reads",
            "torch:Tensor",
            name,
            "2.6-",
            "the tracer warns of each read of a tensor, also of those that are sizes, and of none "
            "that makes a key of it",
        )
        for name in ("__bool__", "__int__", "__index__", "__float__", "item", "__hash__")
    ),
    Patch(
        "patience",
        "torch._subclasses.fake_tensor:FakeTensorMode",
        "dispatch",
        "2.6-",
        "captures may take hours, and have no limit",
    ),
    Patch(
        "data",
        "torch:Tensor",
        "data",
        "2.6-",
        "captures do not see what is read and written by x.data",
    ),
    Patch(
        "attention",
        "torch.nn.functional",
        "scaled_dot_product_attention",
        "2.6-",
        "its is_causal may be computed from sizes",
    ),
    Patch(
        "numbers",
        "torch",
        "as_tensor",
        "2.6-",
        "captures make constants of sizes that become tensors",
    ),
    Patch(
        "forward-mode",
        "torch._functorch.eager_transforms",
        "_jvp_with_argnums",
        "2.6-",
        "forward mode makes sizes static where operands broadcast",
    ),
    *(
        Patch("gradients", target, attribute, "2.6-", "captures lose gradients in forward")
        for target, attribute in (
            ("torch.autograd", "_engine_run_backward"),
            ("torch._functorch.eager_transforms", "grad_increment_nesting"),
            ("torch._functorch.eager_transforms", "jvp_increment_nesting"),
        )
    ),
    Patch(
        "symbolic",
        "torch.autograd:Function.__subclasses__()",
        "forward",
        "2.6-",
        "calls of autograd functions with symbolic functions become ops",
    ),
)


@contextlib.contextmanager
def applied(use: str, make: Mapping[str, Callable[[Any], object]]) -> Generator[None, None, None]:
    """Replaces attributes of torch in this context.

    Args:
        use: The group in ``PATCHES``.
        make: The new value from the old one, by attribute. Other attributes of the group stay.

    Raises:
        ImportError, AttributeError: This version of torch has no such attribute.
    """
    rows = [patch for patch in PATCHES if patch.use == use and patch.attribute in make]
    assert {patch.attribute for patch in rows} == make.keys(), "a patch is missing in the table"
    with contextlib.ExitStack() as stack:
        for patch in rows:
            holder = _target(patch.target)
            function = make[patch.attribute]
            if patch.attribute.startswith("["):
                stack.enter_context(_kernel(holder, patch.attribute.strip("[]"), function))
            else:
                value = function(getattr(holder, patch.attribute))
                stack.enter_context(replaced(holder, patch.attribute, value))
        yield


def attributes(use: str) -> list[str]:
    """The attributes of a group."""
    return [patch.attribute for patch in PATCHES if patch.use == use]


def first_existing(use: str) -> str | None:
    """The first attribute of a group that this version of torch has."""
    for patch in PATCHES:
        with contextlib.suppress(ImportError, AttributeError):
            if patch.use == use and hasattr(_target(patch.target), patch.attribute):
                return patch.attribute
    return None


@contextlib.contextmanager
def replaced(holder: object, attribute: str, value: object) -> Generator[None, None, None]:
    """Replaces an attribute of a module, a class or an object in this context.

    An attribute that the holder itself does not have, but its class or base, is removed afterwards,
    unless it is a property.
    """
    is_property = isinstance(getattr(type(holder), attribute, None), property)
    own = is_property or attribute in vars(holder)
    old = getattr(holder, attribute) if is_property else vars(holder).get(attribute)
    setattr(holder, attribute, value)
    try:
        yield
    finally:
        if own:
            setattr(holder, attribute, old)
        else:
            delattr(holder, attribute)


@contextlib.contextmanager
def _kernel(op: Any, key: str, make: Callable[[Any], object]) -> Generator[None, None, None]:
    """Replaces the kernel of an op in Python for one dispatch key."""
    dispatch_key = getattr(torch._C.DispatchKey, key)
    old = op.py_kernels.get(dispatch_key)
    op.py_kernels[dispatch_key] = make(op)
    op._dispatch_cache.clear()
    try:
        yield
    finally:
        if old is None:
            op.py_kernels.pop(dispatch_key, None)
        else:
            op.py_kernels[dispatch_key] = old
        op._dispatch_cache.clear()


def _target(path: str) -> Any:
    module, _, steps = path.partition(":")
    found: object = importlib.import_module(module)
    return functools.reduce(getattr, filter(None, steps.split(".")), found)


@contextlib.contextmanager
def exporting() -> Generator[None, None, None]:
    """Makes ``torch.onnx.is_in_onnx_export()`` true. No other thread captures meanwhile."""
    attribute = first_existing("exporting")
    with LOCK, applied("exporting", {attribute: lambda _: True} if attribute else {}):
        yield
