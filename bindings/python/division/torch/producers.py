"""What autograd's nodes tell of the tensor that they made.

A hook sees a tensor and not who saves it. But the tensor knows the node that made it, and that is enough to tell maps
of activations from all else: whatever is not made by one of these stays exact. Softmax, sigmoid and their like are left
out on purpose: their own backward passes are not linear in what they saved.
"""
from typing import Any

import torch

_MAPS = """
    Convolution MkldnnConvolution SlowConv2D SlowConv3D ThnnConv2D
    NativeBatchNorm BatchNormWithUpdate NativeGroupNorm NativeLayerNorm FusedRmsNorm
    Relu Threshold LeakyRelu Hardtanh Elu Silu Gelu Hardswish Mish Prelu PreluKernel Clamp RreluWithNoise
    MaxPool1D MaxPool2D MaxPool2DWithIndices MaxPool3DWithIndices AvgPool1D AvgPool2D AvgPool3D
    AdaptiveAvgPool2D AdaptiveAvgPool3D AdaptiveMaxPool2D
    UpsampleNearest1D UpsampleNearest2D UpsampleNearest3D UpsampleLinear1D UpsampleBilinear2D UpsampleTrilinear3D
    UpsampleBicubic2D PixelShuffle PixelUnshuffle
    ConstantPadNd ReflectionPad1D ReflectionPad2D ReplicationPad2D
    Add Sub Mul Div Cat NativeDropout FeatureDropout Slice Narrow
""".split()

# They show a map in another way: what counts is what made the map.
_VIEWS = "ToCopy Clone Permute Transpose View UnsafeView ReshapeAlias Contiguous Squeeze Unsqueeze Alias".split()


def plain_name(node: Any) -> str:
    """ "Relu" of ReluBackward0."""
    return node.name().split("Backward")[0] if node is not None else ""


def makes_map(node: Any) -> bool:
    """True if the node, or what it shows, makes maps of activations."""
    for _ in range(8):
        name = plain_name(node)
        if name not in _VIEWS:
            return name in _MAPS
        node = node.next_functions[0][0]
        if node is None:
            return True
    return False


def saves_its_result(node: Any) -> bool:
    """True while a ReLU (or a leaky one in place) saves what it has just made: its node has no result yet."""
    return plain_name(node) in ("Relu", "Threshold", "LeakyRelu") and _result_of(node) is None


def _result_of(node: Any) -> Any:
    with torch.no_grad():
        return getattr(node, "_saved_result", node)
