"""Pages and pictures: of a Plan, what it needs and where every buffer lies; of a dataflow graph, how it runs."""

from .compiled import compiled_page
from .dataflow_page import dataflow_page
from .gantt import gantt_svg
from .memory_map import memory_map_svg
from .page import plan_page
from .pareto_plot import pareto_svg
from .refusal import refusal

__all__ = [
    "compiled_page",
    "dataflow_page",
    "gantt_svg",
    "memory_map_svg",
    "pareto_svg",
    "plan_page",
    "refusal",
]
