"""Pages and pictures drawn from a Plan: what it needs, where every buffer lies, and why it is no less."""

from .compiled import compiled_page
from .memory_map import memory_map_svg
from .page import plan_page
from .refusal import refusal

__all__ = ["compiled_page", "memory_map_svg", "plan_page", "refusal"]
