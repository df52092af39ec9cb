"""Sources of models: a program of torch.export, or an archive of TorchScript."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

import torch

from . import (
    _errors,
    _examples,
    _leaves,
    _option_json,
    _pytree,
    _shapes,
    _translation,
)
from ._capture._script import Script
from ._capture._trace_code import Package
from ._cx import Function
from ._errors import ConversionError, OnnxExporterError, native_errors
from ._program import ONNXProgram
from ._program._origin import Example, NoExample
from ._pt2onnx import Failure, Program, convert_bytes, convert_module, convert_program
from ._sizes import Asked
from ._types import Args, Kwargs
from .hf import _names

if TYPE_CHECKING:
    from ._pt2onnx import Translation

#: Up to this many dynamic sizes are fixed one by one.
_TRIED = 8

#: Options of a conversion by keyword.
Options = dict[str, object]


class Source(Protocol):
    """A source of a model."""

    def options(self, input_names: Sequence[str] | str | None, *, all_names: bool) -> Options:
        """Its options: names of inputs, of outputs and of dimensions.

        Args:
            input_names: The names of inputs that the user gave.
            all_names: Whether ``input_names`` may also name parameters.
        """
        ...

    @property
    def input_names(self) -> list[str]:
        """The names that inputs have by default."""
        ...

    @property
    def output_count(self) -> int | None:
        """The number of outputs; None if it is unknown until the graph is lowered."""
        ...

    @property
    def ops(self) -> Collection[str]:
        """The names of its ops, without overloads."""
        ...

    def translate(self, options: Options, table: Sequence[Translation]) -> ONNXProgram:
        """The model."""
        ...


@dataclasses.dataclass(frozen=True)
class ProgramOrigin:
    """A program as the origin of a model: an ``Origin``.

    ``relations`` are its assertions about sizes, as relations of SymPy, ``asked`` the sizes that
    were asked for.
    """

    program: torch.export.ExportedProgram
    relations: Sequence[object] = ()
    asked: Asked | None = None

    def flatten(self, args: Args, kwargs: Kwargs) -> list[object]:
        """The values within arguments, in the order of the inputs. Numbers that were fixed at
        export, and None, are not inputs."""
        leaves = _pytree.leaves((args, self.order(kwargs)))
        inputs = _shapes.inputs(self.program)
        if len(inputs) == len(leaves):
            pairs = zip(inputs, leaves, strict=True)
            leaves = [leaf for name, leaf in pairs if name is not None]
        return [leaf for leaf in leaves if leaf is not None]

    def order(self, kwargs: Kwargs) -> Kwargs:
        """Keyword arguments in the order of the program."""
        names = self._keywords()
        return {name: kwargs[name] for name in names} if set(names) == set(kwargs) else kwargs

    def may_name_inputs(self, kwargs: Kwargs) -> bool:
        """Whether these are not the keywords of the program."""
        return set(self._keywords()) != set(kwargs)

    def at_other_sizes(self, args: Args, kwargs: Kwargs) -> Iterator[Example]:
        """Arguments with larger dynamic dimensions.

        Raises:
            NoExample: There are none.
        """
        if self.asked is None:
            yield _examples.of_program(self.program, self.relations, args, kwargs)
            return
        # Sizes that are asked for may be narrower than those that the program takes.
        with contextlib.suppress(NoExample):
            yield _examples.of_program(self.program, self.relations, args, kwargs)
        yield from self.asked.examples(args, kwargs)

    def _keywords(self) -> list[str]:
        return _pytree.keywords(_pytree.in_spec(self.program))


@dataclasses.dataclass(frozen=True)
class ProgramSource:
    """An ExportedProgram, and the dynamic shapes that it was captured with: a ``Source``.

    ``symbolic`` are translations of ops that only this program has, ``relations`` its assertions
    about sizes, ``asked`` the sizes that were asked for. ``names`` are those of the inputs and
    outputs of a model that it is merged with.
    """

    program: torch.export.ExportedProgram
    shapes: object
    symbolic: Mapping[object, Function] = dataclasses.field(default_factory=dict[object, Function])
    relations: Sequence[object] = ()
    asked: Asked | None = None
    names: tuple[list[str], list[str]] | None = None

    def options(self, input_names: Sequence[str] | str | None, *, all_names: bool) -> Options:
        """Its options: see ``Source``."""
        given: list[str] | str | None = None
        if isinstance(input_names, str):
            given = input_names
        elif input_names:
            count = len([name for name in _shapes.inputs(self.program) if name is not None])
            given = list(input_names) if all_names else take_names(input_names, count, "input")
        renamed, outputs = _names.cache_names(self.program)
        options: Options = {
            "input_names": given,
            "rename_dim": _shapes.names(self.program, self.shapes),
        }
        if self.names:
            return {**options, "input_names": self.names[0], "output_names": self.names[1]}
        if renamed and not given:
            options["rename"] = renamed
        return options if outputs is None else {**options, "output_names": outputs}

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs of the program."""
        return [name for name in _shapes.inputs(self.program) if name is not None]

    @property
    def output_count(self) -> int | None:
        """The number of results of the program, without None."""
        specs = self.program.graph_signature.output_specs
        values = [spec.arg for spec in specs if spec.kind.name == "USER_OUTPUT"]
        return len([value for value in values if getattr(value, "value", value) is not None])

    @property
    def ops(self) -> Collection[str]:
        """The names of the ops of the program, without overloads."""
        targets = [node.target for node in self.program.graph.nodes]
        schemas = [getattr(target, "_schema", None) for target in targets]
        return {schema.name for schema in schemas if schema is not None}

    def translate(self, options: Options, table: Sequence[Translation]) -> ONNXProgram:
        """The model."""
        # Exports of traces do not need it.
        from . import _serialize

        text = _option_json.to_json(options)
        table = [*table, *_translation.entries(self.symbolic)]
        program = self.program
        with _serialization():
            parts = _serialize.parts(program)
        with native_errors():
            native = convert_program(*parts, text, table)

        def remake(weights: Mapping[str, torch.Tensor]) -> Program:
            with native_errors():
                return convert_program(*_serialize.parts(program, weights), text, table)

        origin = ProgramOrigin(program, self.relations, self.asked)
        return ONNXProgram(native, program, origin=origin, remake=remake)


@contextlib.contextmanager
def _serialization() -> Generator[None, None, None]:
    """Raises errors of torch as exceptions of this package while a program is serialised."""
    try:
        yield
    except OnnxExporterError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip()}"
        text = f"torch.export could not serialise the program: {reason}"
        raise _errors.new_error(ConversionError, text, "conversion", by_torch=True) from error


class ScriptSource:
    """An archive of TorchScript: a ``Source``."""

    def __init__(self, script: Script, symbolic: Mapping[object, Function] | None = None) -> None:
        self._script = script
        #: Translations of ops that only this archive has.
        self._symbolic = symbolic or {}

    def options(self, input_names: Sequence[str] | str | None, *, all_names: bool) -> Options:
        """Its options: names of inputs, and the type of floats."""
        names = input_names or None
        if names and not isinstance(names, str):
            count = self._script.input_count
            names = list(names) if all_names else take_names(names, count, "input")
        dtype = str(torch.get_default_dtype()).removeprefix("torch.")
        return {"input_names": names, "default_dtype": dtype}

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs; none if some of them are several inputs of the model."""
        leaves = self._script.input_leaves
        known = len(leaves) == self._script.input_count
        return [leaf.path.replace(".", "_") for leaf in leaves] if known else []

    @property
    def output_count(self) -> int | None:
        """Unknown until the graph is lowered."""
        return None

    @property
    def ops(self) -> Collection[str]:
        """The kinds of nodes that a trace has; none of a script, which may have them in branches
        that are not taken."""
        return self._script.kinds()

    def translate(self, options: Options, table: Sequence[Translation]) -> ONNXProgram:
        """The model. If there is none with all dynamic sizes, and the script allows that, one of
        them or all are fixed, with a warning."""
        table = [*table, *_translation.entries(self._symbolic)]
        try:
            return self._with_numbers(options, table)
        except _errors.UnsupportedOperatorError:
            raise
        except OnnxExporterError as error:
            sizes = self._script.dynamic_sizes if self._script.may_fix_sizes else []
            if not sizes:
                raise
            with contextlib.suppress(OnnxExporterError):
                return self._with_sizes(sizes, error, options, table)
            raise

    def _with_sizes(
        self,
        sizes: list[str],
        error: BaseException,
        options: Options,
        table: Sequence[Translation],
    ) -> ONNXProgram:
        """The model in which the first of these sizes is fixed with which there is one, or all."""
        self._script.fixed_sizes = frozenset(sizes)
        made, fixed = self._with_numbers(options, table), sizes
        for size in sizes if 1 < len(sizes) <= _TRIED else []:
            self._script.fixed_sizes = frozenset([size])
            with contextlib.suppress(OnnxExporterError):
                made, fixed = self._with_numbers(options, table), [size]
                break
        _errors.warn(
            f"The model takes only the sizes of the example for {', '.join(fixed)}, as it cannot "
            f"be made with dynamic ones: {_errors.brief(error)}"
        )
        return made

    def _with_numbers(self, options: Options, table: Sequence[Translation]) -> ONNXProgram:
        """The model. Numbers among the arguments are inputs of it; if there is no such model, they
        keep their values, with a warning."""
        script = self._script
        try:
            return self._translate(options, table)
        except OnnxExporterError:
            if not (script.free_numbers and script.may_fix_numbers and script.has_numbers):
                raise
            script.free_numbers = False
            given = options["input_names"]
            if given and not isinstance(given, str):
                given = take_names(cast(list[str], given), script.input_count, "input")
            made = self._translate({**options, "input_names": given}, table)
            _errors.warn(
                "The numbers among the arguments are fixed in the model: it cannot be made with "
                "others."
            )
            return made

    def _translate(self, options: Options, table: Sequence[Translation]) -> ONNXProgram:
        specs, renamed = self._script.input_specs()
        dims = {**renamed, **cast(dict[str, str], options.get("rename_dim") or {})}
        text = _option_json.to_json({**options, "input": specs, "rename_dim": dims})
        package = self._script.package
        has_lines = options.get("node_docs") or options.get("provenance") in (None, "full")
        if has_lines and package.with_stacks is not None:
            package = package.with_stacks()
        return ONNXProgram(_converted(package, text, table), origin=self._script)


def _converted(package: Package, options: str, table: Sequence[Translation]) -> Program:
    """The program of a package. Messages about it have the user's lines: if there are any, it is
    converted again with these."""
    again = package.with_stacks
    try:
        if package.storages is None:
            program = convert_bytes(package.archive, options, table)
        else:
            program = convert_module(package.archive, package.storages, options, table)
        if again is None or not program.warnings(grouped=False):
            return program
    except Failure as failure:
        if again is None:
            raise _errors.from_native(failure) from None
    return _converted(again(), options, table)


def rename_defaults(options: Options, defaults: Sequence[str]) -> None:
    """Renames inputs whose default names the user gives to others. Warns of them.

    Args:
        options: The options of the conversion.
        defaults: The names that inputs have by default.
    """
    given, outputs = (options.get(key) for key in ("input_names", "output_names"))
    inputs = cast(list[str], given) if isinstance(given, list) else []
    taken = {*inputs, *(cast(list[str], outputs) if isinstance(outputs, list) else [])}
    names = {*taken, *defaults}
    renamed = {name: _leaves.free(name, names) for name in defaults[len(inputs) :] if name in taken}
    for old, new in renamed.items():
        _errors.warn(f"The input `{old}` is called `{new}`, as that name is given to another value")
    if renamed:
        options["rename"] = {**cast(dict[str, str], options.get("rename") or {}), **renamed}


def take_names(names: Sequence[str], count: int, kind: str) -> list[str]:
    """The first names. Warns of others.

    Args:
        names: Names that the user gave.
        count: The number of inputs or outputs.
        kind: ``"input"`` or ``"output"``.
    """
    if len(names) > count:
        _errors.warn(
            f"There are {len(names)} {kind}_names, but the model has {count} {kind}s; the last "
            "names are ignored."
        )
    return list(names)[:count]
