"""Stages of several networks whose C differs in values alone: printed once, as functions that read the values."""

from .atoms import StageReader, definitions
from .printing import StageProbe, StageShapes, kernel_types
from .shape import NAMES, PrintedStage

__all__ = ["NAMES", "PrintedStage", "StageProbe", "StageReader", "StageShapes", "definitions", "kernel_types"]
