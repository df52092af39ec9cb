"""Settings of the tests with PyTorch."""

import pytest
import torch

from pt2onnx import _translate


@pytest.fixture(autouse=True)
def fresh():
    """The same random numbers, and no translations of other tests."""
    torch.manual_seed(0)
    old = dict(_translate._REGISTERED)
    yield
    _translate._REGISTERED.clear()
    _translate._REGISTERED.update(old)
    torch._dynamo.reset()
