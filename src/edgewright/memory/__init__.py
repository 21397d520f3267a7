"""The order of layers, lifetimes and addresses of buffers, and the plans that result."""

from .deploy import PartRequest, deploy
from .fit import Fit, critical_buffers, fit
from .layout import Item, LayoutProblem, Placement, conflicts, place_optimal
from .ordering import Order, OrderProblem, Store, order
from .planner import checked_alignment, plan
from .techniques import PLAIN, Techniques
from .views import with_copies

__all__ = [
    "PLAIN", "Fit", "Item", "LayoutProblem", "Order", "OrderProblem", "PartRequest", "Placement", "Store",
    "Techniques", "checked_alignment", "conflicts", "critical_buffers", "deploy", "fit", "order", "place_optimal",
    "plan", "with_copies",
]  # fmt: skip
