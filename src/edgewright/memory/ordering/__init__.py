"""The order of steps that needs the least memory, proven."""

from edgewright.memory.ordering.problem import Order, OrderProblem, Store, is_valid, peak, profile
from edgewright.memory.ordering.solve import OrderEffort, order, order_as_listed, order_depth_first, order_greedy

__all__ = [
    "Order", "OrderEffort", "OrderProblem", "Store", "is_valid", "order", "order_as_listed", "order_depth_first",
    "order_greedy", "peak", "profile",
]  # fmt: skip
