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
    from . import hal, samples
    from .adaptive.runtime import adaptive
    from .compiling import Compiled, compile_model, load
    from .emit import Kernels, Options, Rounding
    from .memory import Item, LayoutProblem, Placement, Techniques, critical_buffers, place_optimal
    from .network import Network, Region, Tensor, random_inputs
    from .network.onnx_writer import to_onnx, write_onnx
    from .network.operators.custom import CustomOperator, load_operators
    from .network.parts import subnetwork
    from .network.read import read as read_model
    from .planning import load_plan, plan
    from .platform import Board, catalogue, load_board
    from .program import Buffer, Plan, Program, interpret, save_plan
    from .report import plan_page
    from .run.pipeline import Pipeline, pipeline
    from .verbs import inspect_model as inspect
    from .verbs import map_model as map  # noqa: F401
    from .verbs import plan_app as app
    from .verbs import profile_model as profile
else:  # the same names, loaded on first use
    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "hal": (),
            "samples": (),
            "adaptive": (),
            "compiling": ("Compiled", "compile_model", "load"),
            "emit": ("Kernels", "Options", "Rounding"),
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
            "network.operators.custom": ("CustomOperator", "load_operators"),
            "network.parts": ("subnetwork",),
            "network.read": ("read_model=read",),
            "planning": ("load_plan", "plan"),
            "platform": ("Board", "catalogue", "load_board"),
            "program": ("Buffer", "Plan", "Program", "interpret", "save_plan"),
            "report": ("plan_page",),
            "run.pipeline": ("Pipeline", "pipeline"),
            "verbs": ("app=plan_app", "inspect=inspect_model", "map=map_model", "profile=profile_model"),
        },
    )

__version__ = "0.6.0"

# `edgewright.map` is left out: a star import would hide Python's own `map`.
__all__ = [
    "Board", "BoardError", "Buffer", "Compiled", "CustomOperator", "EdgewrightError", "Infeasible", "InputError",
    "Item", "Kernels", "LayoutProblem", "ModelError", "Network", "Options", "Pipeline", "Placement", "Plan", "Program",
    "Region", "Rounding", "Techniques", "Tensor", "Unsupported", "adaptive", "app", "catalogue", "compile_model",
    "critical_buffers", "hal", "inspect", "interpret", "load", "load_board", "load_operators", "load_plan", "pipeline",
    "place_optimal", "plan", "plan_page", "profile", "random_inputs", "read_model", "samples", "save_plan",
    "subnetwork", "to_onnx", "write_onnx",
]  # fmt: skip
