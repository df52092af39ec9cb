"""Modules and functions in TorchScript: the archive, and the specifications of its inputs, as Rust
takes them.
"""

from __future__ import annotations

import dataclasses
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch

from .. import _dynamic_axes, _examples, _leaves, _pytree, _shapes
from .._conditions import Condition
from .._leaves import Leaf, TensorLeaf
from .._program._origin import Example
from .._sizes import Sizes
from .._types import Args, Kwargs, is_dict
from . import _constants, _jit
from ._jit import JitGraph
from ._trace_code import Package

#: Element types of numbers that stay free.
_FREE: dict[type, str] = {bool: "bool[]", int: "int64[]", float: "float64[]"}


class Script:
    """An archive of TorchScript and the arguments that it is converted for: an ``Origin``."""

    def __init__(
        self,
        package: Package,
        parameters: Sequence[str],
        leaves: Sequence[Leaf],
        *,
        paths: Sequence[str] | None = None,
    ) -> None:
        self.package = package
        #: The conditions on sizes that captures of its module have.
        self.conditions: list[Condition] = []
        #: The scripted module, if it is one.
        self.run: Callable[..., Any] | None = None
        self.parameters = list(parameters)
        self.leaves = list(leaves)
        #: The paths of the leaves in the arguments, if the archive is a trace with other names.
        self._paths = None if paths is None else list(paths)
        #: Whether numbers are inputs of the model, as in torch.onnx's exporter of TorchScript.
        self.free_numbers = True
        #: Whether they become constants if there is no model with free ones.
        self.may_fix_numbers = True
        #: Names of dynamic sizes that are those of the arguments.
        self.fixed_sizes: frozenset[str] = frozenset()
        #: Whether sizes may be fixed if there is no model in which all are dynamic.
        self.may_fix_sizes = False
        #: Gets the kinds of nodes, if it is a trace.
        self.kinds: Callable[[], frozenset[str]] = frozenset

    @property
    def dynamic_sizes(self) -> list[str]:
        """The names of the dynamic sizes."""
        sizes = _shapes.SizeNames()
        for leaf in self.leaves:
            if isinstance(leaf, TensorLeaf):
                sizes.of(leaf)
        return list(sizes.known)

    @property
    def has_numbers(self) -> bool:
        """Whether there are numbers that may be free."""
        return any(leaf.is_number and not leaf.default for leaf in self.leaves)

    @property
    def input_leaves(self) -> list[Leaf]:
        """The arguments that are inputs of the model, in order."""
        return [leaf for leaf in self.leaves if leaf.is_tensor or self._is_free(leaf)]

    @property
    def input_count(self) -> int:
        """The number of inputs of the model."""
        return sum(len(_leaves.components(leaf.value)) for leaf in self.input_leaves)

    def _is_free(self, leaf: Leaf) -> bool:
        return self.free_numbers and leaf.is_number and not leaf.default

    def input_specs(self) -> tuple[dict[str, str], dict[str, str]]:
        """The option ``input``: the type or value of each argument by its path; and the names that
        were given to sizes with another symbol there."""
        sizes = _shapes.SizeNames(self.fixed_sizes)
        specs = {leaf.path: self._spec(leaf, sizes) for leaf in self.leaves}
        return specs, sizes.renamed

    def _spec(self, leaf: Leaf, sizes: _shapes.SizeNames) -> str:
        value = leaf.value
        if isinstance(leaf, TensorLeaf):
            dtype = str(leaf.value.dtype).removeprefix("torch.")
            return f"{dtype}[{','.join(sizes.of(leaf))}]"
        if self._is_free(leaf):
            return _FREE[type(value)]
        if value is None:
            return "none"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return f'"{value}"'
        return "[]" if isinstance(value, (list, tuple, dict)) else repr(value)

    def flatten(self, args: Args, kwargs: Kwargs) -> list[object]:
        """The values within arguments that are inputs, in the order of the inputs."""
        leaves = self._flatten(args, kwargs)
        if self._paths is not None:
            values = {leaf.path: leaf.value for leaf in leaves}
            found = [values[path] for path in self._paths if path in values]
        else:
            inputs = {leaf.path for leaf in self.input_leaves}
            found = [leaf.value for leaf in leaves if leaf.path in inputs]
        return [part for value in found for part in _leaves.components(value)]

    def order(self, kwargs: Kwargs) -> Kwargs:
        """Keyword arguments as they were given: the archive binds them by name."""
        return kwargs

    def may_name_inputs(self, kwargs: Kwargs) -> bool:
        """False: keywords are parameters."""
        return False

    def at_other_sizes(self, args: Args, kwargs: Kwargs) -> Iterator[Example]:
        """Arguments with larger dynamic dimensions, to be tried in turn."""
        paths = [leaf.path for leaf in self.leaves] if self._paths is None else self._paths
        axes = {path: leaf.axes for path, leaf in zip(paths, self.leaves, strict=True)}
        leaves = [
            dataclasses.replace(leaf, axes=axes.get(leaf.path))
            for leaf in self._flatten(args, kwargs)
            if isinstance(leaf, TensorLeaf)
        ]
        yield from _examples.of_leaves(self.parameters, args, kwargs, leaves, self.fixed_sizes)
        sizes = Sizes(self.parameters, args, kwargs, leaves, self.fixed_sizes)
        yield from map(sizes.at, sizes.to_try(self.conditions))

    def _flatten(self, args: Args, kwargs: Kwargs) -> list[Leaf]:
        """The values within other arguments."""
        bind = _leaves.bind if self._paths is None else _leaves.by_name
        return _leaves.flatten(bind(self.parameters, args, kwargs), None)


def of_model(model: Any, args: Args, kwargs: Kwargs, shapes: object) -> Script:
    """A module or function in TorchScript.

    Args:
        model: The module or function.
        args: The positional arguments.
        kwargs: The keyword arguments.
        shapes: Dynamic shapes, nested as the arguments.

    Raises:
        TypeError: The arguments do not fit.
    """
    file = io.BytesIO()
    with warnings.catch_warnings(), _constants.typed(graphs(model)):
        _jit.ignore_deprecation()
        cast(Any, torch.jit).save(model, file)
    arguments = _jit.schema(model).arguments
    is_module = isinstance(model, torch.jit.ScriptModule)
    parameters = _parameters(model)[1 if is_module else 0 :]
    given = _leaves.bind(parameters, args, kwargs)
    rest = [one for one in arguments if one.name in parameters and one.name not in given]
    missing = [f"`{one.name}: {one.type}`" for one in rest if not one.has_default_value()]
    if given and missing:
        raise TypeError(f"no argument is given for {', '.join(missing)}")
    leaves = _leaves.flatten(given, shapes)
    _check_shapes(parameters, leaves, shapes)
    if not is_module:
        # The archive of a function has no defaults.
        defaults = {one.name: one.default_value for one in rest if one.has_default_value()}
        unset = _leaves.flatten(defaults, None)
        leaves += [dataclasses.replace(leaf, default=True) for leaf in unset]
    return Script(Package(file.getvalue()), parameters, leaves)


def graphs(model: Any) -> Iterator[JitGraph]:
    """The graphs of a function, or of the methods of a module."""
    if not isinstance(model, torch.jit.ScriptModule):
        yield model.graph
        return
    for part in cast(Any, model).modules():
        for code in [part._c] if hasattr(part, "_c") else []:
            yield from (code._get_method(name).graph for name in code._method_names())


def _check_shapes(parameters: Sequence[str], leaves: Sequence[Leaf], shapes: object) -> None:
    """Raises ValueError if dynamic shapes are not those of these arguments."""
    if shapes is None:
        return
    if is_dict(shapes) and (unknown := [name for name in shapes if name not in parameters]):
        known = ", ".join(parameters)
        raise ValueError(f"`dynamic_shapes` has {unknown}, but the parameters are {known}")
    tensors = [leaf for leaf in leaves if leaf.is_tensor]
    if found := [problem for leaf in tensors for problem in _shapes.problems(leaf)]:
        raise ValueError("; ".join(found))
    axes = _pytree.flatten(shapes, _shapes.is_axes)[0]
    if sum(map(_shapes.is_dynamic, axes)) != sum(_shapes.is_dynamic(leaf.axes) for leaf in leaves):
        raise ValueError("`dynamic_shapes` is not nested as the arguments are")


def _parameters(model: Any) -> list[str]:
    """The names of parameters. The trace of a function of ``*args`` may have one of them twice,
    which its code distinguishes."""
    names = [argument.name for argument in _jit.schema(model).arguments]
    if len(set(names)) == len(names):
        return names
    text: str = model.code
    listed = text[text.index("(") + 1 : text.index(") ->")]
    found: list[str] = re.findall(r"(?:^|,)\s*(\w+)(?=:|,|$)", listed)
    return found if len(set(found)) == len(names) else names


def with_axes(script: Script, given: _dynamic_axes.DynamicAxes) -> Script:
    """The script with ``dynamic_axes`` of torch.onnx.export: by one of ``input_names``, or by path.

    Warns of names that no input has.
    """
    names: dict[str, str] = {}
    at = 0
    input_names = given.input_names or ()
    for leaf in script.input_leaves:
        own = input_names[at] if at < len(input_names) else leaf.path
        at += len(_leaves.components(leaf.value))
        for name in (own, leaf.path, leaf.path.replace(".", "_")):
            names.setdefault(name, leaf.path)
    output_names = given.output_names
    outputs = set(output_names or ()) if not isinstance(output_names, str) else set[str]()
    axes: dict[str, object] = {}
    for name, of_input in (given.axes or {}).items():
        found = _shapes.axes_of(name, of_input)
        if name in names:
            axes[names[name]] = found
        elif name not in outputs:
            _dynamic_axes.warn_unknown(name)
    leaves = [dataclasses.replace(leaf, axes=axes.get(leaf.path)) for leaf in script.leaves]
    return Script(script.package, script.parameters, leaves)
