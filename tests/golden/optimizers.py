#!/usr/bin/env python3
"""Makes tests/golden/optimizers.inc, which tests/test_optimizer.c holds the optimizers to: parameters after each of 20
steps, computed by PyTorch on the CPU in f32. Parameters begin as a ramp and gradients are sines of step and element, so
that the file holds results alone.

    python3 tests/golden/optimizers.py > tests/golden/optimizers.inc
"""
import math

import torch

STEPS, COUNT = 20, 5

CASES = {  # the text of ours: PyTorch's
    "sgd:momentum=0,decay=0.01": lambda p: torch.optim.SGD(p, lr=0.05, weight_decay=0.01),
    "sgd:momentum=0.9,decay=0.01": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "sgd:momentum=0.9,nesterov=1,decay=0.01":
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.05),
    "adamw:beta1=0.8,beta2=0.95,eps=1e-3,decay=0.2":
        lambda p: torch.optim.AdamW(p, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.05),
    "rmsprop:alpha=0.9,eps=1e-3,decay=0.01":
        lambda p: torch.optim.RMSprop(p, lr=0.05, alpha=0.9, eps=1e-3, weight_decay=0.01),
    "rmsprop:momentum=0.8": lambda p: torch.optim.RMSprop(p, lr=0.05, momentum=0.8),
    "rmsprop:alpha=0.9,eps=1e-3,centered=1":
        lambda p: torch.optim.RMSprop(p, lr=0.05, alpha=0.9, eps=1e-3, centered=True),
    "rmsprop:alpha=0.9,eps=1e-3,momentum=0.5,centered=1,decay=0.01":
        lambda p: torch.optim.RMSprop(p, lr=0.05, alpha=0.9, eps=1e-3, momentum=0.5, centered=True, weight_decay=0.01),
}


def gradient(step, i):
    return math.sin(0.7 * step + 1.3 * i + 0.5) * (1 + 0.25 * i)


def run(make):
    """Parameters of every step."""
    p = torch.nn.Parameter(torch.tensor([0.5 * i - 1 for i in range(COUNT)], dtype=torch.float32))
    optimizer = make([p])
    for step in range(STEPS):
        p.grad = torch.tensor([gradient(step, i) for i in range(COUNT)], dtype=torch.float32)
        optimizer.step()
        yield p.tolist()


print(f"/* Made by optimizers.py with PyTorch {torch.__version__}. */")
for text, make in CASES.items():
    print(f'{{"{text}",\n {{')
    for values in run(make):
        print("  {" + ", ".join(f"{v:.9g}" for v in values) + "},")
    print(" }},")
