"""Pages and pictures drawn from a Plan: what it needs, where every buffer lies, and why it is no less."""

from .memory_map import memory_map_svg
from .page import plan_page

__all__ = ["memory_map_svg", "plan_page"]
