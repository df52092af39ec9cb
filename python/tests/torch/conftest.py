"""Settings of the tests with PyTorch."""

import pytest
import torch
from pt2onnx import _translation


@pytest.fixture(autouse=True)
def fresh():
    """The same random numbers, and no translations of other tests."""
    torch.manual_seed(0)
    old = dict(_translation._REGISTERED)
    yield
    _translation._REGISTERED.clear()
    _translation._REGISTERED.update(old)
    torch._dynamo.reset()
