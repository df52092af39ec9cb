"""Results that view a buffer which the module replaces by a new tensor."""

from __future__ import annotations

import itertools
import operator
from typing import Any, cast

import torch
from torch.fx import Node


def keep_old_values(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Copies old values of replaced buffers that the program returns.

    For ``self.buf = self.buf + 1``, torch.export writes the new tensor into the buffer at the end,
    so that views of the buffer have the new values, too.

    Args:
        program: A program that we own.
    """
    graph = program.graph
    *body, output = graph.nodes
    writes = list(itertools.takewhile(_is_replacement, reversed(body)))
    if not writes:
        return program
    buffers = {write.args[0] for write in writes}
    copies: dict[Node, Node] = {}

    def copied(value: Node) -> Node:
        if value not in copies and _viewed(value) in buffers:
            with graph.inserting_before(writes[-1]):
                copies[value] = graph.call_function(torch.ops.aten.clone.default, (value,))
            copies[value].meta = dict(value.meta)
        return copies.get(value, value)

    for write in writes:
        write.update_arg(1, copied(cast(Node, write.args[1])))
    output.args = torch.fx.map_arg(output.args, copied)
    if not copies:
        return program
    names = {value.name: copy.name for value, copy in copies.items()}
    for spec in program.graph_signature.output_specs:
        # Constants have no name in older versions of torch.
        name = getattr(spec.arg, "name", None)
        if name in names:
            spec.arg.name = names[name]
    program.graph_module.recompile()
    return program


def _is_replacement(node: Node) -> bool:
    """Whether torch.export made this write for a buffer that the module replaces: writes of the
    module are named ``copy_``."""
    return node.target is torch.ops.aten.copy_.default and node.name.startswith("copy__default")


def _viewed(node: Node) -> Node:
    """The value that a node is a view of; the node if it is not a view."""
    while node.op == "call_function":
        schema: Any = getattr(node.target, "_schema", None)
        is_view = schema and schema.returns and schema.returns[0].alias_info
        if not is_view and node.target is not operator.getitem:
            break
        node = cast(Node, node.args[0])
    return node
