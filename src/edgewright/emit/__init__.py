"""C from a closed plan, its files, and the virtual board that checks them. Nothing is decided here."""

from ..platform.target import TARGETS, Family, Target
from ..program.options import Kernels, Optimise, Options, Rounding
from .library import Library, emit

__all__ = ["TARGETS", "Family", "Kernels", "Library", "Optimise", "Options", "Rounding", "Target", "emit"]
