"""C from a plan: kernels, targets, packaging, and the virtual board that checks it."""

from .library import Library, emit
from .options import Kernels, Optimise, Options, Rounding
from .target import TARGETS, Family, Target

__all__ = ["TARGETS", "Family", "Kernels", "Library", "Optimise", "Options", "Rounding", "Target", "emit"]
