"""Objects that a module reaches: their attributes and content, which are restored by identity."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import operator
import random
import re
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import torch

from ._storages import Storages

#: Containers and objects that are visited besides modules: nearer ones come first.
_LARGEST_WALK = 10_000

#: Containers of more elements and arrays of more bytes are left alone: they are data, not state.
_LARGEST = 100_000

#: Classes of values that hold no others, or none that a module changes.
_ATOMS = frozenset(
    (
        *(int, float, bool, str, bytes, complex, type(None), range, slice, type(...), re.Pattern),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size),
        *(types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType),
        *(types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType),
        *(types.CodeType, types.MappingProxyType, types.GenericAlias, types.UnionType),
    )
)

#: Mutable containers. Most of them are empty: hooks of modules.
_CONTAINERS = frozenset((dict, collections.OrderedDict, list, set, collections.deque))

#: Classes of containers without attributes.
_PLAIN = _CONTAINERS | {tuple, frozenset, collections.defaultdict}

#: Modules of the standard library whose objects are visited.
_VISITED = frozenset(("types", "collections", "argparse", "weakref", "functools", "_thread"))

#: The parts of torch whose objects are visited, besides modules and tensors.
_VISITED_OF_TORCH = ("torch.nn.", "torch.distributions.", "torch.ao.")

#: Built-in classes: users' subclasses may have other methods.
_DICT: Any = dict
_ORDERED: Any = collections.OrderedDict
_LIST: Any = list
_SET: Any = set
_DEQUE: Any = collections.deque

#: A value, what it holds, and the function that restores this.
_Content = tuple[Any, Any, Callable[[Any, Any], None]]

_Cache = type(functools.cache(lambda: None))
_UNSET = object()

#: Classes of globals of libraries that may be state.
_GLOBALS = _CONTAINERS | {_Cache, collections.defaultdict, torch.Tensor}


class Objects:
    """All objects that can be reached from some roots, and what they hold.

    Args:
        roots: Modules, functions and other objects.
        storages: Gets the tensors.
    """

    def __init__(self, roots: Iterable[object], storages: Storages) -> None:
        self._storages = storages
        self._seen: set[int] = set()
        self._kinds: dict[type, Callable[[Any], None] | None] = {}
        self._next: list[object] = []
        self._slots: dict[type, list[types.MemberDescriptorType]] = {}
        self._classes: set[type] = set()
        self._files: set[str] = set()
        #: Empty containers, the class and ``__dict__`` of objects, and the content of others with
        #: the function that restores it.
        self._empty: list[Any] = []
        self._objects: list[tuple[Any, type, dict[str, object]]] = []
        self._contents: list[_Content] = []
        self._walk(roots)
        #: The contents that are compared all at once, and the others.
        self._plain = _PlainContents(self._contents)
        self._others = [content for content in self._contents if not _is_plain(content)]
        for cache in (self._seen, self._kinds, self._slots, self._classes, self._files):
            cache.clear()

    def restore(self) -> None:
        """Gives all objects their attributes and content."""
        for container in self._empty:
            if container:
                container.clear()
        for value, cls, attributes in self._objects:
            if type(value) is not cls or _dict_of(value) is not attributes:
                with contextlib.suppress(Exception):
                    object.__setattr__(value, "__class__", cls)
                    object.__setattr__(value, "__dict__", attributes)
        for value, old, restore in self._others if self._plain.are_same() else self._contents:
            try:
                restore(value, old)
            except Exception:
                # Objects of classes of users may refuse.
                continue

    # The walk, breadth first.

    def _walk(self, roots: Iterable[object]) -> None:
        self._reach(roots)
        count = 0
        while self._next and count < _LARGEST_WALK:
            level, self._next = self._next, []
            for value in level:
                visit = self._kind(type(value))
                if visit is None:
                    continue
                count += visit != self._module and visit != self._tensor
                try:
                    visit(value)
                except Exception:
                    # Attributes may be computed, by code that fails.
                    continue

    def _reach(self, values: Iterable[object]) -> None:
        seen = self._seen
        for value in values:
            cls = type(value)
            if cls in _ATOMS:
                continue
            if cls in _CONTAINERS and not value:
                self._empty.append(value)
            elif id(value) not in seen:
                seen.add(id(value))
                self._next.append(value)

    def _kind(self, cls: type) -> Callable[[Any], None] | None:
        """How objects of a class are visited; None if they are not."""
        if cls not in self._kinds:
            found = (visit for base, visit in self._visits() if issubclass(cls, base))
            self._kinds[cls] = next(found, self._attributes if _is_visited(cls) else None)
        return self._kinds[cls]

    def _visits(self) -> Iterator[tuple[Any, Callable[[Any], None]]]:
        yield torch.jit.ScriptModule, self._script
        yield torch.nn.Module, self._module
        yield torch.Tensor, self._tensor
        yield torch.Generator, self._generator
        yield random.Random, self._generator
        if "numpy" in sys.modules:
            yield sys.modules["numpy"].ndarray, self._array
        yield type, self._class
        yield types.FunctionType, self._function
        yield types.MethodType, self._method
        yield types.CellType, self._cell
        yield (staticmethod, classmethod), self._wrapper
        yield property, self._property
        yield functools.partial, self._partial
        yield _Cache, self._cache
        yield collections.OrderedDict, self._ordered
        yield dict, self._dict
        yield list, self._list
        yield set, self._set
        yield collections.deque, self._deque
        yield (tuple, frozenset), self._frozen
        yield types.ModuleType, self._file

    def _hold(self, value: object, old: object, restore: Callable[[Any, Any], None]) -> None:
        self._contents.append((value, old, restore))

    # Containers. Those of subclasses have attributes as well, and methods of users.

    def _dict(self, value: dict[object, object]) -> None:
        if len(value) <= _LARGEST:
            old = dict(_DICT.items(value))
            self._hold(value, old, _restore_dict)
            self._reach(old.values())
        self._attributes(value)

    def _ordered(self, value: collections.OrderedDict[object, object]) -> None:
        if len(value) <= _LARGEST:
            old = dict(_ORDERED.items(value))
            self._hold(value, old, _restore_ordered)
            self._reach(old.values())
        self._attributes(value)

    def _list(self, value: list[object]) -> None:
        if _LIST.__len__(value) <= _LARGEST:
            old = _LIST.copy(value)
            self._hold(value, old, _restore_list)
            self._reach(old)
        self._attributes(value)

    def _set(self, value: set[object]) -> None:
        if _SET.__len__(value) <= _LARGEST:
            old = _SET.copy(value)
            self._hold(value, old, _restore_set)
            self._reach(old)
        self._attributes(value)

    def _deque(self, value: collections.deque[object]) -> None:
        if len(value) <= _LARGEST:
            old = list(value)
            self._hold(value, old, _restore_deque)
            self._reach(old)
        self._attributes(value)

    def _frozen(self, value: tuple[object, ...] | frozenset[object]) -> None:
        if len(value) <= _LARGEST:
            self._reach(value)
        self._attributes(value)

    # Objects with attributes.

    def _script(self, module: torch.jit.ScriptModule) -> None:
        """A module in TorchScript. Its own attributes are in C++."""
        for tensor in (*module.parameters(), *module.buffers()):
            self._storages.add(tensor)

    def _module(self, module: torch.nn.Module) -> None:
        self._attributes(module)

    def _attributes(self, value: object) -> None:
        """Attributes that are in ``__dict__`` or in slots."""
        cls = type(value)
        if cls in _PLAIN:
            return
        if cls not in self._slots:
            self._slots[cls] = list(_slots(cls))
            self._class(cls, with_files=issubclass(cls, torch.nn.Module))
        attributes = _dict_of(value)
        if attributes is not None:
            old = attributes.copy()
            self._objects.append((value, cls, attributes))
            self._contents.append((attributes, old, _restore_dict))
            self._reach(old.values())
        for slot in self._slots[cls]:
            held: object = _UNSET
            with contextlib.suppress(AttributeError):
                held = slot.__get__(value, cls)
            self._hold((slot, value), held, _restore_slot)
            self._reach((held,))

    def _tensor(self, tensor: torch.Tensor) -> None:
        self._storages.add(tensor)
        self._reach((vars(tensor),))
        if tensor.is_leaf and tensor.grad is not None:
            self._reach((tensor.grad,))

    def _generator(self, value: Any) -> None:
        """A generator of random numbers, of torch or Python."""
        if isinstance(value, torch.Generator):
            self._hold(value, value.get_state(), lambda value, old: value.set_state(old))
        else:
            self._hold(value, value.getstate(), lambda value, old: value.setstate(old))

    def _array(self, array: Any) -> None:
        if array.nbytes <= _LARGEST:
            self._hold(array, array.copy(), _restore_array)

    # Functions, classes and files.

    def _function(self, function: Any) -> None:
        name = function.__module__ or ""
        if not _is_visited_name(name):
            return
        closure, defaults = function.__closure__ or (), function.__defaults__ or ()
        self._reach((function.__dict__, function.__kwdefaults__, *closure, *defaults))
        self._own_file(name)

    def _method(self, method: types.MethodType) -> None:
        self._reach((method.__self__, method.__func__))

    def _cell(self, cell: types.CellType) -> None:
        held: object = _UNSET
        with contextlib.suppress(ValueError):
            held = cell.cell_contents
        self._hold(cell, held, _restore_cell)
        self._reach((held,))

    def _wrapper(self, value: Any) -> None:
        self._reach((value.__func__, value.__dict__))

    def _property(self, value: property) -> None:
        self._reach((value.fget, value.fset))

    def _partial(self, value: functools.partial[object]) -> None:
        self._reach((value.func, value.args, value.keywords))
        self._attributes(value)

    def _cache(self, cache: Any) -> None:
        """A function with a cache, whose entries cannot be taken out one by one."""
        misses = cache.cache_info().misses
        self._hold(cache, misses, _restore_cache)
        self._reach((cache.__wrapped__, cache.__dict__))

    def _class(self, cls: type, *, with_files: bool = False) -> None:
        """The attributes of a class and its bases, and the globals of their files: of all if
        ``with_files``, else of the user's."""
        for base in cls.__mro__:
            if not _is_visited_name(base.__module__):
                continue
            file = sys.modules.get(base.__module__)
            if with_files and file is not None:
                self._reach((file,))
            else:
                self._own_file(base.__module__)
            if base not in self._classes:
                self._classes.add(base)
                held = dict(vars(base))
                if _is_autograd(base):
                    # An export replaces it.
                    held.pop("forward", None)
                self._hold(base, held, _restore_class)
                self._reach(value for name, value in held.items() if not _is_special(name))

    def _own_file(self, name: str) -> None:
        """The file of a module of Python, if it is the user's."""
        if name not in self._files:
            self._files.add(name)
            file = sys.modules.get(name)
            if file is not None and _is_of_user(file):
                self._reach((file,))

    def _file(self, file: types.ModuleType) -> None:
        """The globals of a file: containers and caches; of the user's also functions, objects
        and classes that are defined there."""
        held = dict(vars(file))
        self._hold(vars(file), held, _restore_globals)
        name = file.__name__
        if not _is_of_user(file):
            self._reach(
                value
                for key, value in held.items()
                if type(value) in _GLOBALS and not _is_special(key)
            )
            return
        self._reach(
            value
            for key, value in held.items()
            if not _is_special(key)
            and not (isinstance(value, type) and value.__module__ != name)
            and not (isinstance(value, types.ModuleType) and not _is_of_user(value))
        )


class _PlainContents:
    """The contents of dicts, lists and classes, which most runs do not change.

    Args:
        contents: All contents.
    """

    def __init__(self, contents: Iterable[_Content]) -> None:
        plain = [content[0] for content in contents if _is_plain(content)]
        own = [vars(value) if isinstance(value, type) else value for value in plain]
        self._maps: list[Any] = [value for value in own if type(value) is not list]
        self._lists: list[Any] = [value for value in own if type(value) is list]
        self._old = self._now()

    def are_same(self) -> bool:
        """Whether all hold the same objects, in order."""
        old, now = self._old, self._now()
        return old[0] == now[0] and _same(old[1], now[1])

    def _now(self) -> tuple[list[int], list[object]]:
        """The lengths of all, and what they hold."""
        values = map(operator.methodcaller("values"), self._maps)
        all_of = itertools.chain(self._lists, self._maps, values)
        lengths = [*map(len, self._lists), *map(len, self._maps)]
        return lengths, [*itertools.chain.from_iterable(all_of)]


def _is_plain(content: _Content) -> bool:
    """Whether a content is that of a built-in class, and is restored as a whole."""
    value, old, restore = content
    if isinstance(value, type):
        return len(vars(value)) == len(old)
    wholes = (_restore_dict, _restore_list, _restore_globals)
    return type(value) in (dict, list) and restore in wholes


def _dict_of(value: object) -> dict[str, object] | None:
    """The ``__dict__`` of an object, without code of its class; None if it has none."""
    try:
        found: dict[str, object] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found


def _slots(cls: type) -> Iterator[types.MemberDescriptorType]:
    """The slots of a class and its bases."""
    for base in cls.__mro__:
        if "__slots__" in vars(base):
            members = vars(base).values()
            yield from (one for one in members if isinstance(one, types.MemberDescriptorType))


def _is_autograd(cls: type) -> bool:
    return issubclass(cls, torch.autograd.Function)


def _is_special(name: str) -> bool:
    """Whether a name is one of Python: ``__doc__``."""
    return name.startswith("__") and name.endswith("__")


def _is_visited(cls: type) -> bool:
    """Whether objects of a class are visited."""
    name = cls.__module__
    if name.partition(".")[0] in sys.stdlib_module_names:
        return name.partition(".")[0] in _VISITED
    return name.startswith(_VISITED_OF_TORCH) or _is_visited_name(name)


@functools.lru_cache(maxsize=4096)
def _is_visited_name(name: str) -> bool:
    """Whether classes and functions of a Python module are visited: it is neither Python's nor
    torch's."""
    top = name.partition(".")[0]
    return top not in ("torch", "numpy", "functorch", "pt2onnx") and (
        top not in sys.stdlib_module_names
    )


def _is_of_user(file: types.ModuleType) -> bool:
    """Whether a Python module is neither installed nor Python's: the user's code."""
    path = getattr(file, "__file__", None)
    name = file.__name__
    if name == "__main__" or path is None:
        return name == "__main__"
    return _is_visited_name(name) and "site-packages" not in path and "dist-packages" not in path


# Each restores what one object held, if that is no longer so.


def _restore_dict(now: dict[object, object], old: dict[object, object]) -> None:
    if not _same(_DICT.keys(now), old.keys()) or not _same(_DICT.values(now), old.values()):
        _DICT.clear(now)
        _DICT.update(now, old)


def _restore_ordered(
    now: collections.OrderedDict[object, object], old: dict[object, object]
) -> None:
    keys, values = _ORDERED.keys(now), _ORDERED.values(now)
    if not _same(keys, old.keys()) or not _same(values, old.values()):
        _ORDERED.clear(now)
        for key, value in old.items():
            _ORDERED.__setitem__(now, key, value)


def _restore_list(now: list[object], old: list[object]) -> None:
    if not _same(_LIST.copy(now), old):
        _LIST.__setitem__(now, slice(None), old)


def _restore_set(now: set[object], old: set[object]) -> None:
    if set(map(id, now)) != set(map(id, old)):
        _SET.clear(now)
        _SET.update(now, old)


def _restore_deque(now: collections.deque[object], old: list[object]) -> None:
    if not _same(now, old):
        _DEQUE.clear(now)
        _DEQUE.extend(now, old)


def _restore_array(now: Any, old: Any) -> None:
    if now.tobytes() != old.tobytes():
        now[...] = old


def _restore_slot(now: tuple[types.MemberDescriptorType, object], old: object) -> None:
    slot, value = now
    held: object = _UNSET
    with contextlib.suppress(AttributeError):
        held = slot.__get__(value, type(value))
    if held is old:
        return
    if old is _UNSET:
        slot.__delete__(value)
    else:
        slot.__set__(value, old)


def _restore_cell(cell: types.CellType, old: object) -> None:
    if old is not _UNSET:
        cell.cell_contents = old
    else:
        with contextlib.suppress(ValueError):
            del cell.cell_contents


def _restore_cache(cache: Any, misses: int) -> None:
    if cache.cache_info().misses != misses:
        cache.cache_clear()


def _restore_class(cls: type, old: dict[str, object]) -> None:
    now = dict(vars(cls))
    for name in now.keys() - old.keys():
        if not _is_special(name) and not _is_autograd(cls):
            type.__delattr__(cls, name)
    for name, value in old.items():
        if now.get(name, _UNSET) is not value:
            with contextlib.suppress(AttributeError, TypeError):
                type.__setattr__(cls, name, value)


def _restore_globals(now: dict[str, object], old: dict[str, object]) -> None:
    if _same(now.keys(), old.keys()) and _same(now.values(), old.values()):
        return
    for name in [name for name in now if name not in old and not _is_special(name)]:
        del now[name]
    for name, value in old.items():
        if now.get(name, _UNSET) is not value and not _is_special(name):
            now[name] = value


def _same(one: Collection[object], other: Collection[object]) -> bool:
    """Whether the same objects are in both, in order."""
    return len(one) == len(other) and all(map(operator.is_, one, other))
