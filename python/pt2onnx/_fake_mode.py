"""torch's mode of tensors without memory."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Generator

from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv


@contextlib.contextmanager
def fake_mode() -> Generator[FakeTensorMode, None, None]:
    """In this context, new tensors have shapes and types, but no memory."""
    shape_env = ShapeEnv(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False)
    mode = FakeTensorMode(allow_non_fake_inputs=not detect_fake_mode(), shape_env=shape_env)
    with mode, warnings.catch_warnings():
        yield mode
