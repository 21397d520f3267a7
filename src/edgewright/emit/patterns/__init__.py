"""Stages of several networks whose C differs in values alone: printed once, as functions that read the values."""

from .atoms import StageReader, definitions
from .pattern import NAMES, PrintedStage
from .printing import StagePatterns, StageProbe, kernel_types

__all__ = ["NAMES", "PrintedStage", "StagePatterns", "StageProbe", "StageReader", "definitions", "kernel_types"]
