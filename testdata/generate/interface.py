"""Programs whose interface matters most: fixed and dynamic batches, and dimensions that follow from others. Registered with
`make.case` on import."""
from __future__ import annotations


def register(case):
    import torch
    from torch.export import Dim

    class Bottleneck(torch.nn.Module):
        """A block of ResNet-50: 1x1, 3x3 and 1x1 convolutions around a shortcut."""

        def __init__(self, inputs, width, stride):
            super().__init__()
            outputs = 4 * width
            sizes = ((inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1))
            self.convs = torch.nn.ModuleList(torch.nn.Conv2d(i, o, k, s, k // 2, bias=False) for i, o, k, s in sizes)
            self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(o) for _, o, _, _ in sizes)
            self.shortcut = torch.nn.Sequential(
                torch.nn.Conv2d(inputs, outputs, 1, stride, bias=False), torch.nn.BatchNorm2d(outputs)
            )

        def forward(self, x):
            y = x
            for conv, norm in zip(self.convs, self.norms):
                y = norm(conv(y if y is x else y.relu()))
            return torch.relu(y + self.shortcut(x))

    class ResNet(torch.nn.Module):
        """ResNet-50 in small: its stem, two blocks, and its classifier, for images of CIFAR-10."""

        def __init__(self):
            super().__init__()
            self.stem = torch.nn.Sequential(
                torch.nn.Conv2d(3, 8, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1)
            )
            self.layer1 = Bottleneck(8, 4, 1)
            self.layer2 = Bottleneck(16, 8, 2)
            self.fc = torch.nn.Linear(32, 10)

        def forward(self, input):
            x = self.layer2(self.layer1(self.stem(input)))
            return self.fc(torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))

    def norms_that_matter(module):
        for layer in module.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                torch.nn.init.uniform_(layer.weight, 0.5, 1.5)
                torch.nn.init.normal_(layer.bias)
                torch.nn.init.normal_(layer.running_mean)
                torch.nn.init.uniform_(layer.running_var, 0.5, 1.5)
        return module

    class Shifted(torch.nn.Module):
        def forward(self, x, y):
            return x + y[:-1], x[::2]

    class Sum(torch.nn.Module):
        def forward(self, x, y):
            return x + y, torch.cat([x, y])

    def images(n):
        return (torch.randn(n, 3, 32, 32),)

    @case
    def resnet_fixed():
        return norms_that_matter(ResNet()), images(10), None, None

    @case
    def resnet_dynamic():
        return norms_that_matter(ResNet()), images(10), ({0: Dim("batch_size")},), images(3)

    @case
    def derived_dim():
        d = Dim("d", min=3, max=64)
        return Shifted(), (torch.randn(6), torch.randn(7)), ({0: d}, {0: d + 1}), (torch.randn(5), torch.randn(6))

    @case
    def multiple_dim():
        d = Dim("d", max=32)
        xs = {0: 2 * d}
        return Sum(), (torch.randn(6, 3), torch.randn(6, 3)), (xs, xs), (torch.randn(8, 3), torch.randn(8, 3))
