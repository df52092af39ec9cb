"""Python's collector of garbage during exports: its thresholds are as before afterwards."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pt2onnx
import pytest
import torch
from pt2onnx import _garbage
from pt2onnx._capture._strategies import Capturer
from torch import nn


def test_thresholds_are_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    before, inside, run = gc.get_threshold(), [], Capturer.run

    def asked(*args: Any) -> Any:
        inside.append(gc.get_threshold())
        return run(*args)

    monkeypatch.setattr(Capturer, "run", asked)
    pt2onnx.export(nn.Identity().eval(), (torch.ones(2),))
    assert inside[0][0] > before[0]
    assert gc.get_threshold() == before


def test_thresholds_of_threads() -> None:
    """The last thread that leaves restores them."""
    before, inside, go = gc.get_threshold(), threading.Event(), threading.Event()

    def other() -> None:
        with _garbage.collected_rarely:
            inside.set()
            go.wait(60)

    thread = threading.Thread(target=other)
    with _garbage.collected_rarely:
        thread.start()
        assert inside.wait(60)
    assert gc.get_threshold() != before
    go.set()
    thread.join()
    assert gc.get_threshold() == before


def test_no_collections_stay_none() -> None:
    before = gc.get_threshold()
    gc.set_threshold(0, *before[1:])
    try:
        with _garbage.collected_rarely:
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)


def test_results_are_freed_at_once() -> None:
    """They may be large."""
    x, axes = torch.ones(2, 3), {"x": {0: "batch"}}

    def pair(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x * 2

    def tensors() -> int:
        return sum(isinstance(one, torch.Tensor) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = tensors()
        pt2onnx.export(pair, (x,), input_names=["x"], dynamic_axes=axes, dynamo=False)
        assert tensors() == before
    finally:
        gc.enable()
