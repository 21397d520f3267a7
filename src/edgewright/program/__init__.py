"""The network as executed: steps over regions, stages of fused layers, plans and deployments, and their judges."""

from ..network import Region
from .check import checked, faults
from .codec import load_plan, plan_from_dict, plan_text, plan_to_dict, save_plan, structure_digest
from .deployment import OUTSIDE, Deployment, Fifo, Part, Prediction, Worker
from .deployment_check import checked_deployment, deployment_faults
from .deployment_file import load_deployment, save_deployment
from .fusion import CHANNELS, COLUMNS, FusedLayers, FusionSchedule, Split, even_ends
from .interpreter import Interpreter, interpret
from .order import check_order
from .plan import Buffer, CheaperPlan, FaultKind, Plan, PlanFault, Saving, View, arena_sizes, room_name
from .program import Program, Stage
from .row_trace import PixelChain, RowTrace
from .steps import ROWS, Step, Sweep, restricted, rows_needed, summed_axes, sums_bytes, sums_name
from .tiling import Tiling

__all__ = [
    "CHANNELS", "COLUMNS", "OUTSIDE", "ROWS", "Buffer", "CheaperPlan", "Deployment", "FaultKind", "Fifo", "FusedLayers",
    "FusionSchedule", "Interpreter", "Part", "PixelChain", "Plan", "PlanFault", "Prediction", "Program", "Region",
    "RowTrace", "Saving", "Split", "Stage", "Step", "Sweep", "Tiling", "View", "Worker", "arena_sizes",
    "check_order", "checked", "checked_deployment", "deployment_faults", "even_ends", "faults", "interpret",
    "load_deployment", "load_plan", "plan_from_dict", "plan_text", "plan_to_dict", "restricted", "room_name",
    "rows_needed", "save_deployment", "save_plan", "structure_digest", "summed_axes", "sums_bytes", "sums_name",
]  # fmt: skip
