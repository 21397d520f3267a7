"""The order of steps that needs the least memory, proven."""

from .problem import Order, OrderProblem, Store, is_valid, peak, profile
from .solve import OrderEffort, order

__all__ = ["Order", "OrderEffort", "OrderProblem", "Store", "is_valid", "order", "peak", "profile"]
