"""edgewright: runs trained CNNs on small hardware in the least memory, with proof.

>>> import edgewright
>>> net = edgewright.read_model(edgewright.samples.build("resnet8"))
>>> edgewright.plan(net).peak_bytes <= edgewright.plan(net, plain=True).peak_bytes
True
"""

from . import samples
from .compiling import Compiled, compile_model
from .emit import Kernels, Options, Rounding
from .emit.native import load
from .errors import BoardError, EdgewrightError, Infeasible, InputError, ModelError, Unsupported
from .memory import Item, LayoutProblem, Placement, Techniques, critical_buffers, place_optimal, plan
from .network import Network, Region, Tensor, random_inputs
from .network.onnx_writer import to_onnx, write_onnx
from .network.read import read as read_model
from .platform import Board, catalogue, load_board
from .program import Buffer, Plan, Program, interpret, load_plan, save_plan
from .report import plan_page

__version__ = "0.5.0"

__all__ = [
    "Board",
    "BoardError",
    "Buffer",
    "Compiled",
    "EdgewrightError",
    "Infeasible",
    "InputError",
    "Item",
    "Kernels",
    "LayoutProblem",
    "ModelError",
    "Network",
    "Options",
    "Placement",
    "Plan",
    "Program",
    "Region",
    "Rounding",
    "Techniques",
    "Tensor",
    "Unsupported",
    "catalogue",
    "compile_model",
    "critical_buffers",
    "interpret",
    "load",
    "load_board",
    "load_plan",
    "place_optimal",
    "plan",
    "plan_page",
    "random_inputs",
    "read_model",
    "samples",
    "save_plan",
    "to_onnx",
    "write_onnx",
]
