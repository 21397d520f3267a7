"""Pages and pictures of plans. `dataflow_page`, `gantt` and `pareto_plot` are imported from their own modules, since
few runs need them."""

from .compiled import compiled_page
from .front_page import front_page
from .graph import network_graph_svg
from .memory_map import memory_map_svg
from .page import plan_page
from .refusal import refusal

__all__ = ["compiled_page", "front_page", "memory_map_svg", "network_graph_svg", "plan_page", "refusal"]
