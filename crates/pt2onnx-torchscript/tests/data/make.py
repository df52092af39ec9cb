"""Makes the TorchScript archives beside it; needs PyTorch: `python make.py`."""
import pathlib
import sys

import torch

HERE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).parent


class Block(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.bn = torch.nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.bn(self.conv(x))) + x


class Net(torch.nn.Module):
    """Modules in modules."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Block(3), Block(3)])
        self.fc = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.fc(x.mean([2, 3]))


class Counter(torch.nn.Module):
    """Writes into buffers; has two methods and tied weights."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(3, 3, bias=False)
        self.second = torch.nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        self.count += 1
        return self.second(self.first(x)) * scale + self.count

    @torch.jit.export
    def scaled(self, x: torch.Tensor, by: int) -> torch.Tensor:
        return x * self.count * by


class Odd(torch.nn.Module):
    """An op that has no translation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x)
        return y.to_sparse().to_dense() + x


def main() -> None:
    torch.manual_seed(0)
    net = Net().eval()
    torch.jit.trace(net, torch.zeros(2, 3, 8, 8)).save(str(HERE / "net.pt"))
    torch.jit.script(net).save(str(HERE / "net_script.pt"))
    torch.jit.script(Counter()).save(str(HERE / "counter.pt"))
    torch.jit.trace(Odd(), torch.eye(3)).save(str(HERE / "odd.pt"))
    torch.jit.script(Odd()).save(str(HERE / "odd_script.pt"))


if __name__ == "__main__":
    main()
