"""Which layers are fused and how they run: schedules by hand, the joint search, the paper's exploration, their cost."""

from .search import Front, front

__all__ = ["Front", "front"]
