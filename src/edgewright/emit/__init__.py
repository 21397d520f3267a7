"""C from a plan: kernels, targets, packaging, and the virtual board that checks it."""

from .library import Library, emit
from .options import Kernels, Options, Rounding
from .target import TARGETS, Family, Target

__all__ = ["TARGETS", "Family", "Kernels", "Library", "Options", "Rounding", "Target", "emit"]
