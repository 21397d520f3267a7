"""edgewright: runs trained CNNs on small hardware in the least memory, with proof.

>>> import edgewright
>>> net = edgewright.read_model(edgewright.samples.build("resnet8"))
>>> edgewright.plan(net).peak_bytes <= edgewright.plan(net, plain=True).peak_bytes
True
"""

from typing import TYPE_CHECKING

from .errors import BoardError, EdgewrightError, Infeasible, InputError, ModelError, Unsupported
from .lazy import lazy_attributes

if TYPE_CHECKING:
    from . import samples
    from .adaptive.runtime import adaptive
    from .compiling import Compiled, compile_model
    from .emit import Kernels, Options, Rounding
    from .emit.native import load
    from .memory import Item, LayoutProblem, Placement, Techniques, critical_buffers, place_optimal
    from .network import Network, Region, Tensor, random_inputs
    from .network.onnx_writer import to_onnx, write_onnx
    from .network.read import read as read_model
    from .planning import plan
    from .platform import Board, catalogue, load_board
    from .program import Buffer, Plan, Program, interpret, load_plan, save_plan
    from .report import plan_page
    from .run.pipeline import Pipeline, pipeline
else:  # the same names, each loaded with what it stands on when it is first asked for
    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "samples": (),
            "adaptive": (),
            "compiling": ("Compiled", "compile_model"),
            "emit": ("Kernels", "Options", "Rounding"),
            "emit.native": ("load",),
            "memory": (
                "Item",
                "LayoutProblem",
                "Placement",
                "Techniques",
                "critical_buffers",
                "place_optimal",
            ),
            "network": ("Network", "Region", "Tensor", "random_inputs"),
            "network.onnx_writer": ("to_onnx", "write_onnx"),
            "network.read": ("read_model=read",),
            "planning": ("plan",),
            "platform": ("Board", "catalogue", "load_board"),
            "program": ("Buffer", "Plan", "Program", "interpret", "load_plan", "save_plan"),
            "report": ("plan_page",),
            "run.pipeline": ("Pipeline", "pipeline"),
        },
    )

__version__ = "0.6.0"

__all__ = [
    "Board", "BoardError", "Buffer", "Compiled", "EdgewrightError", "Infeasible", "InputError", "Item", "Kernels",
    "LayoutProblem", "ModelError", "Network", "Options", "Pipeline", "Placement", "Plan", "Program", "Region",
    "Rounding", "Techniques", "Tensor", "Unsupported", "adaptive", "catalogue", "compile_model", "critical_buffers",
    "interpret", "load", "load_board", "load_plan", "pipeline", "place_optimal", "plan", "plan_page",
    "random_inputs", "read_model", "samples", "save_plan", "to_onnx", "write_onnx",
]  # fmt: skip
