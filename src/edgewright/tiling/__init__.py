"""Which parts, where: how a network is cut into stretches, tiles and rows, and what that costs."""

from .search import Front, fitting, front, least

__all__ = ["Front", "fitting", "front", "least"]
