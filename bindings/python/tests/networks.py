"""Small networks and what tests do with them."""
import torch
from torch import nn


def small(inplace=True):
    """Convolutions, norms, ReLUs and a pooling, for images of 3 x 24 x 24."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace), nn.Conv2d(32, 32, 1), nn.ReLU(inplace),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )


def images(count=8, channels=3, side=24, dims=2):
    """Smooth ones, as those of cameras are."""
    x = torch.randn((count, channels) + (side,) * dims)
    pool = {1: nn.functional.avg_pool1d, 2: nn.functional.avg_pool2d, 3: nn.functional.avg_pool3d}[dims]
    return pool(x, 3, 1, 1) * 3


def gradient(model, loss_of, context=None):
    """All gradients of a loss as one vector. Running statistics are left as they were."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.zero_grad()
    if context is None:
        loss = loss_of()
    else:
        with context:
            loss = loss_of()
    loss.backward()
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def distance(one, other):
    """Of two gradients, by the length of the second."""
    return float((one - other).norm() / other.norm())
