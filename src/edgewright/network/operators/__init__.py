"""The operators: one frozen class each. `Op` is the closed set, so that a test can ask every one for its kernel."""

from .base import Grain, Operator
from .custom import Custom
from .dynamic import DynamicProduct, DynamicQuantize, DynamicRange
from .elementwise import (
    ACTIVATIONS,
    Activation,
    BatchNorm,
    Binary,
    BinaryKind,
    Cast,
    Clamp,
    Compare,
    CompareKind,
    Dequantize,
    Elementwise,
    Elu,
    HardSigmoid,
    LeakyRelu,
    PRelu,
    Quantize,
    Select,
    Unary,
    UnaryKind,
)
from .linear import Dense, MatMul
from .normalise import L2Normalize, LogSoftmax, Lrn, Softmax
from .rearrange import (
    Concat,
    DepthToSpace,
    Expand,
    Gather,
    GatherElements,
    Pad,
    PadMode,
    Reshape,
    Slice,
    SpaceToDepth,
    Tile,
    Transpose,
)
from .recurrent import LstmPart, LstmStep
from .reduce import ArgMax, NonMaxSuppression, Reduce, ReduceKind, TopK
from .resize import Coordinates, NearestMode, Resize, ResizeMode
from .sums import BETWEEN_PARTS, FinishSums, PartialSum
from .window import AvgPool2d, Conv2d, ConvTranspose2d, MaxPool2d, Pads, Pair

Op = (
    Activation | ArgMax | AvgPool2d | BatchNorm | Binary | Cast | Compare | Concat | Conv2d | ConvTranspose2d | Custom
    | Dense | DepthToSpace | Dequantize | DynamicProduct | DynamicQuantize | DynamicRange | Expand | FinishSums | Gather
    | GatherElements | L2Normalize | LogSoftmax | Lrn | LstmStep | MatMul | MaxPool2d | NonMaxSuppression | Pad
    | PartialSum | PRelu | Quantize | Reduce | Reshape | Resize | Select | Slice | Softmax | SpaceToDepth | Tile | TopK
    | Transpose
)  # fmt: skip

__all__ = [
    "ACTIVATIONS", "BETWEEN_PARTS", "Activation", "ArgMax", "AvgPool2d", "BatchNorm", "Binary", "BinaryKind",
    "Cast", "Clamp", "Compare", "CompareKind", "Concat", "Conv2d", "ConvTranspose2d", "Coordinates", "Custom", "Dense",
    "DepthToSpace", "Dequantize", "DynamicProduct", "DynamicQuantize", "DynamicRange", "Elementwise", "Elu",
    "Expand", "FinishSums", "Gather", "GatherElements", "Grain", "HardSigmoid", "L2Normalize", "LeakyRelu",
    "LogSoftmax", "Lrn", "LstmPart", "LstmStep", "MatMul", "MaxPool2d", "NearestMode", "NonMaxSuppression", "Op",
    "Operator", "PRelu", "Pad", "PadMode", "Pads", "Pair", "PartialSum", "Quantize", "Reduce", "ReduceKind", "Reshape",
    "Resize", "ResizeMode", "Select", "Slice", "Softmax", "SpaceToDepth", "Tile", "TopK", "Transpose", "Unary",
    "UnaryKind",
]  # fmt: skip
