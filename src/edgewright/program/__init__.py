"""The network as executed: regions, steps, loops, stages; plans as data; the interpreter that judges them."""

from ..network import Region
from .check import checked, faults
from .codec import load_plan, plan_from_dict, plan_text, plan_to_dict, save_plan
from .fault import FaultKind, PlanFault
from .interpreter import Interpreter, interpret
from .order import check_order
from .plan import Buffer, Plan, Saving, View, arena_sizes, room_name
from .program import Program
from .rows import ROWS, rows_needed
from .shares import restricted, summed_axes, sums_bytes, sums_name
from .steps import Item, Loop, Stage, Step, Stream, Sweep, Tiles, Unit
from .stream import Flow
from .tiling import Tiling

__all__ = [
    "ROWS",
    "Buffer",
    "FaultKind",
    "Flow",
    "Interpreter",
    "Item",
    "Loop",
    "Plan",
    "PlanFault",
    "Program",
    "Region",
    "Saving",
    "Stage",
    "Step",
    "Stream",
    "Sweep",
    "Tiles",
    "Tiling",
    "Unit",
    "View",
    "arena_sizes",
    "check_order",
    "checked",
    "faults",
    "interpret",
    "load_plan",
    "plan_from_dict",
    "plan_text",
    "plan_to_dict",
    "restricted",
    "room_name",
    "rows_needed",
    "save_plan",
    "summed_axes",
    "sums_bytes",
    "sums_name",
]
