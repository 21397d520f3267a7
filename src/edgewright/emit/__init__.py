"""C from a plan: kernels, targets, packaging, and the virtual board that checks it."""

from ..platform.target import TARGETS, Family, Target
from ..program.options import Kernels, Optimise, Options, Rounding
from .library import Library, emit

__all__ = ["TARGETS", "Family", "Kernels", "Library", "Optimise", "Options", "Rounding", "Target", "emit"]
