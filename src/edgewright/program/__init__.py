"""The network as executed: regions, steps, loops, stages; plans as data; the interpreter that judges them."""

from ..network import Region
from .codec import load_plan, plan_from_dict, plan_text, plan_to_dict, save_plan
from .interpreter import Interpreter, interpret
from .plan import Buffer, Plan, Saving, View
from .program import Loop, Program, Stage, Step, Sweep, check

__all__ = [
    "Buffer",
    "Interpreter",
    "Loop",
    "Plan",
    "Program",
    "Region",
    "Saving",
    "Stage",
    "Step",
    "Sweep",
    "View",
    "check",
    "interpret",
    "load_plan",
    "plan_from_dict",
    "plan_text",
    "plan_to_dict",
    "save_plan",
]
