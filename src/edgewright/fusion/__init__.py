"""Which layers run together, and how: by hand, by the joint search, or as the paper explores; and what that costs."""

from .search import Front, fitting, front, least

__all__ = ["Front", "fitting", "front", "least"]
