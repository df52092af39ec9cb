"""Verification: a model and the exported module run with the same arguments, and are compared."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from ._errors import VerificationError
from ._program._origin import Example, NoExample
from ._verification import OutputCheck, Verification

if TYPE_CHECKING:
    import torch

    from ._program._origin import Origin
    from ._types import Args, Kwargs, Model

__all__ = ["OutputCheck", "Verification", "verify"]


#: How long other sizes are compared, as a multiple of the time of the first.
_BUDGET = 10

#: How many sizes are listed if the module takes none.
_NOTES = 2


class Verifiable(Protocol):
    """A model that can be verified: an ``ONNXProgram``."""

    exported_program: torch.export.ExportedProgram | None

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        ...

    @property
    def _origin(self) -> Origin: ...

    @property
    def _is_dynamic(self) -> bool: ...

    def _inputs(self, args: Args, kwargs: Kwargs) -> dict[str, object]:
        """The arguments of the module as inputs of the model, by name."""
        ...

    def _run(self, args: Args, kwargs: Kwargs, state: Mapping[str, object]) -> tuple[object, ...]:
        """Runs the model with the arguments of the module, and with its state where that is an
        input."""
        ...


def verify(
    program: Verifiable,
    model: Model,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    *,
    second_size: bool = True,
) -> Verification:
    """Runs the model in ONNX Runtime and in PyTorch, and compares all outputs.

    Args:
        program: An ``ONNXProgram``.
        model: The module that was exported.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        second_size: Whether to compare at other sizes of the dynamic dimensions as well: on both
            sides of where the code decides by sizes, at the ends of their ranges, and others.

    Raises:
        VerificationError: ONNX Runtime cannot load or run the model.
        Exception: The errors of PyTorch at the given sizes.
    """
    if not hasattr(program, "_origin"):
        kind = type(cast(object, program)).__name__
        raise TypeError(
            f"verify takes an ONNXProgram and the module that it was made of, not {kind}"
        )
    given = program._origin.order(dict(kwargs or {}))
    checks = _checks(program, model, Example(tuple(args), given, "given"))
    notes: list[str] = []
    others = _other_examples(program, tuple(args), given, notes) if second_size else iter(())
    checks += _compared(program, model, others, notes, checks[0].name if checks else "")
    of_checks = dict.fromkeys(check.note for check in checks if check.note)
    return Verification(tuple(checks), (*of_checks, *notes))


def _compared(
    program: Verifiable, model: Model, examples: Iterator[Example], notes: list[str], name: str
) -> list[OutputCheck]:
    """Compares the outputs at other sizes, until they differ.

    Args:
        program: The model.
        model: The module.
        examples: The arguments.
        notes: Gets the reasons if the module takes none of them.
        name: The name of the first output.

    Returns:
        The comparisons at the first sizes, and those at sizes where outputs differ.
    """
    found: list[OutputCheck] = []
    first, start = 0.0, time.process_time()
    for example in examples:
        try:
            checks = _checks(program, model, example)
        except VerificationError as error:
            return [*found, OutputCheck(name, str(error), math.inf, math.inf, example.sizes)]
        except Exception as error:
            if not first and len(notes) < _NOTES:
                text = f"{type(error).__name__}: {str(error).strip()[:200]}"
                notes.append(f"not compared at {example.sizes}: PyTorch raises {text}")
            continue
        is_right = all(check.ok for check in checks)
        if not first or not is_right:
            found += checks
        spent = time.process_time() - start
        first = first or spent
        notes.clear()
        if not is_right or spent > _BUDGET * first:
            break
    return found


def _checks(program: Verifiable, model: Model, example: Example) -> list[OutputCheck]:
    """Compares the outputs for one example: see ``verify``."""
    from ._compare import compare_model

    return compare_model(program, model, example)


def _other_examples(
    program: Verifiable, args: Args, kwargs: Kwargs, notes: list[str]
) -> Iterator[Example]:
    """Arguments with larger dynamic dimensions, to be tried in turn.

    Args:
        program: The model.
        args: The positional arguments.
        kwargs: The keyword arguments.
        notes: Gets the reason if there are none.
    """
    if not program._is_dynamic:
        return
    try:
        yield from program._origin.at_other_sizes(args, kwargs)
    except NoExample as reason:
        notes.append(f"not compared at other sizes: {reason}")
    except Exception as error:
        notes.append(f"not compared at other sizes: {type(error).__name__}: {error}")
