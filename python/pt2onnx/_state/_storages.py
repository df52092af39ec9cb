"""Memory of tensors: each storage that is written to is copied before, and restored."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from .._types import is_items
from ._globals import without_modes

T = TypeVar("T")

#: Larger storages are not copied before torch.export captures a module.
_LARGEST = 2**24

#: Bytes of parameters, above which they are not copied.
_LARGEST_OF_PARAMETERS = 2**28

#: Operators that write to running statistics without a mark in their schemas.
_UNMARKED = frozenset(
    (
        *("aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"),
        *("aten::batch_norm", "aten::_batch_norm_impl_index", "aten::instance_norm"),
    )
)


class _Tensor(NamedTuple):
    """A tensor, its memory and sizes as another tensor, and its place in autograd."""

    tensor: torch.Tensor
    alias: torch.Tensor
    requires_grad: bool
    grad: torch.Tensor | None


class _Saved(NamedTuple):
    """A storage and a copy of its bytes."""

    storage: torch.UntypedStorage
    copy: torch.UntypedStorage


class Storages:
    """Tensors and their storages. Only those that are written to are copied."""

    def __init__(self) -> None:
        self._tensors: list[_Tensor] = []
        self._storages: dict[int, torch.UntypedStorage] | None = None
        self._saved: dict[int, _Saved] = {}
        #: Whether code wrote to one of them while that was watched.
        self.writes = False

    def add(self, tensor: torch.Tensor) -> None:
        """Adds a tensor, unless it has no memory."""
        if isinstance(tensor, FakeTensor):
            return
        try:
            grad = tensor.grad if tensor.is_leaf else None
            self._tensors.append(_Tensor(tensor, tensor.data, tensor.requires_grad, grad))
        except Exception:
            # Parameters that are not initialised, and some tensors of other classes.
            return

    @contextlib.contextmanager
    def copied(self, parameters: bool) -> Generator[None, None, None]:
        """Copies the storages of tensors that are attributes. Those of parameters are copied for
        this context only; torch.export runs modules on tensors without memory in their place.

        Args:
            parameters: Whether to copy those of parameters.
        """
        with without_modes():
            for one in self._tensors:
                if not isinstance(one.tensor, torch.nn.Parameter):
                    self.save(one.alias, _LARGEST)
            own = self._of_parameters() if parameters else {}
            copies = [_Saved(storage, cast(Any, storage).clone()) for storage in own.values()]
        try:
            yield
        finally:
            with without_modes():
                for storage, copy in copies:
                    if not torch.equal(_bytes(storage), _bytes(copy)):
                        _restore(storage, copy)

    @property
    def is_small(self) -> bool:
        """Whether all storages of parameters can be copied."""
        sizes = (storage.nbytes() for storage in self._of_parameters().values())
        return sum(sizes) <= _LARGEST_OF_PARAMETERS

    def _of_parameters(self) -> dict[int, torch.UntypedStorage]:
        """The storages of parameters that are not copied yet."""
        tensors = (one for one in self._tensors if isinstance(one.tensor, torch.nn.Parameter))
        pairs = (_storage(one.alias) for one in tensors)
        found = {storage._cdata: storage for storage in pairs if storage is not None}
        return {key: storage for key, storage in found.items() if key not in self._saved}

    @contextlib.contextmanager
    def watched(self) -> Generator[None, None, None]:
        """Copies storages before operators write to them."""
        with _Watch(self):
            yield

    def before_write(self, tensor: torch.Tensor) -> None:
        """Copies the storage of a tensor that will be written to, if it is one of these."""
        self.save(tensor)
        storage = _storage(tensor)
        self.writes = self.writes or (storage is not None and storage._cdata in self._saved)

    def save(self, tensor: torch.Tensor, largest: float = math.inf) -> None:
        """Copies the storage of a tensor, if it is one of these.

        Args:
            tensor: The tensor.
            largest: The number of bytes above which it is not copied.
        """
        if self._storages is None:
            # Many modules write to no tensor.
            pairs = (_storage(one.alias) for one in self._tensors)
            self._storages = {storage._cdata: storage for storage in pairs if storage is not None}
        storage = _storage(tensor)
        if storage is None or storage._cdata in self._saved or storage.nbytes() > largest:
            return
        if storage._cdata in self._storages:
            self._saved[storage._cdata] = _Saved(storage, cast(Any, storage).clone())

    def detached(self, value: T) -> T:
        """A value whose memory is not restored."""
        if not isinstance(value, torch.Tensor):
            return value
        storage = _storage(value)
        saved = storage is None or storage._cdata in self._saved
        return cast(T, value.detach().clone()) if saved else value

    def restore(self) -> None:
        """Gives tensors their memory, and storages their bytes."""
        for tensor, alias, requires_grad, grad in self._tensors:
            try:
                if not _is_at(tensor, alias):
                    tensor.data = alias
                if tensor.requires_grad is not requires_grad:
                    tensor.requires_grad_(requires_grad)
                if tensor.is_leaf and tensor.grad is not grad:
                    tensor.grad = grad
            except Exception:
                # Tensors of other classes may refuse.
                continue
        self.restore_saved()

    def restore_saved(self) -> None:
        """Gives storages that were copied their bytes."""
        for storage, copy in self._saved.values():
            _restore(storage, copy)


def _bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    """The bytes of a storage, by eights where that is possible: those compare faster."""
    dtype = torch.uint8 if storage.nbytes() % 8 else torch.int64
    return torch.tensor([], dtype=dtype, device=storage.device).set_(storage)


def _restore(storage: torch.UntypedStorage, copy: torch.UntypedStorage) -> None:
    if storage.nbytes() != copy.nbytes():
        storage.resize_(copy.nbytes())
    storage.copy_(copy)


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Dynamo skips code in modes in any case. It would be loaded to leave out this one."""
        return False

    def __init__(self, storages: Storages) -> None:
        cast(Any, super()).__init__()
        self._storages = storages
        self._written: dict[object, list[tuple[int, str]]] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: object,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        written = self._written.get(func)
        if written is None:
            written = self._written[func] = _written(func)
        for at, name in written:
            value = args[at] if at < len(args) else (kwargs or {}).get(name)
            for one in value if is_items(value) else (value,):
                if isinstance(one, torch.Tensor):
                    with without_modes():
                        self._storages.before_write(one)
        try:
            return func(*args, **kwargs) if kwargs else func(*args)
        except RuntimeError:
            tensors = _with_tensors(func, args)
            if tensors is None:
                raise
            return func(*tensors, **(kwargs or {}))


def _with_tensors(op: Any, args: Sequence[object]) -> list[object] | None:
    """The arguments of an operator, with tensors in place of numbers that it refuses; None if there
    are none: code in TorchScript calls it with a constant of Python, which a mode gets as a
    number."""
    schema = getattr(op, "_schema", None)
    if schema is None or torch._C._should_allow_numbers_as_tensors(schema.name.split("::")[1]):
        return None
    made = list(args)
    for at, (value, argument) in enumerate(zip(args, schema.arguments, strict=False)):
        if isinstance(value, (bool, int, float, complex)) and str(argument.type) == "Tensor":
            made[at] = _like(value, args[0])
    return made if any(one is not other for one, other in zip(made, args, strict=True)) else None


def _like(value: complex, other: object) -> torch.Tensor:
    """A number as a tensor, of the type of another one if that is of its kind."""
    made = torch.tensor(value)
    if isinstance(other, torch.Tensor) and other.dtype != torch.bool != made.dtype:
        alike = made.is_floating_point() == other.is_floating_point()
        return made.to(other.dtype) if alike and not made.is_complex() else made
    return made


def _written(op: Any) -> list[tuple[int, str]]:
    """The positions and names of the arguments that an operator writes to."""
    schema = getattr(op, "_schema", None)
    if schema is None:
        # An operator that calls functions.
        return []
    statistics = ("running_mean", "running_var") if schema.name in _UNMARKED else ()
    return [
        (at, argument.name)
        for at, argument in enumerate(schema.arguments)
        if (argument.alias_info and argument.alias_info.is_write) or argument.name in statistics
    ]


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """The storage of a tensor; None if it has none, as sparse tensors, or no memory."""
    try:
        return None if tensor.device.type == "meta" else tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def _is_at(tensor: torch.Tensor, alias: torch.Tensor) -> bool:
    """Whether a tensor has the memory, the sizes and the type of another one."""
    try:
        return tensor.dtype == alias.dtype and tensor.is_set_to(alias)
    except (NotImplementedError, RuntimeError):
        # Sparse tensors.
        return True
