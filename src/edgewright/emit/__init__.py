"""C from a plan: kernels, targets, packaging, and the virtual board that checks it."""

from ..platform.target import TARGETS, Family, Target
from .library import Library, emit
from .options import Kernels, Optimise, Options, Rounding

__all__ = ["TARGETS", "Family", "Kernels", "Library", "Optimise", "Options", "Rounding", "Target", "emit"]
