"""What everything costs on a target: coefficients as fitted to what a compiler made of the kernels, kept in files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ...errors import InputError
from ...platform.target import TARGETS, Architecture, Family, Target
from .work import ACTIVATION, KernelWork, general

GCC, ZIG = "gcc", "zig"  # folders of coefficients
Coefficients = Mapping[str, Mapping[str, float]]  # kind of work -> amount -> instructions for each


@dataclass(frozen=True, slots=True)
class FitError:
    """How far estimates were from counts, relative to these, when the model was fitted."""

    median: float  # of single stages
    worst: float
    total: float  # of whole plans: nine in ten were as near


@dataclass(frozen=True)
class CostModel:
    """What everything costs on a target, as one compiler builds for it."""

    target: str
    compiler: str
    coefficients: Coefficients
    error: FitError
    source: str

    def knows(self, work: KernelWork) -> bool:
        functions = self.coefficients.get("activations", {})
        return work.kind in self.coefficients and all(
            key in functions for _, key, _ in work.terms() if key.startswith(ACTIVATION)
        )

    def cost(self, work: KernelWork) -> float:
        """Instructions; work of a kind that was never measured counts as other work on such elements."""
        if work.kind not in self.coefficients:
            work = general(work)
        return sum(self._each(kind, key) * amount for kind, key, amount in work.terms())

    def _each(self, kind: str, key: str) -> float:
        """Of a function that was never measured, what the slowest takes."""
        found = self.coefficients.get(kind) or self.coefficients["other"]
        slowest = max(found.values(), default=0.0) if key.startswith(ACTIVATION) else 0.0
        return found.get(key, slowest)


@cache
def modelled(compiler: str = GCC) -> tuple[str, ...]:
    """The names of targets with a model."""
    files = (resources.files(__package__) / "coefficients" / compiler).iterdir()
    return tuple(sorted(file.name.removesuffix(".json") for file in files if file.name.endswith(".json")))


def model_of(target: Target | str, *, zig: bool = False) -> CostModel:
    """The model of a target as GCC builds, or Zig where that was counted; an error where nothing ever was."""
    name = target_named(target).name
    if name not in modelled():
        raise InputError(
            f"there is no cost model for target '{name}': instructions are counted on the virtual board, which it does "
            f"not have. There is one for {', '.join(modelled())}"
        )
    return _read(name, ZIG if zig and name in modelled(ZIG) else GCC)


def stand_in(target: Target | str | None) -> Target:
    """The target whose counts tell what is faster on this one: itself, or the nearest of which there are counts.

    Kernels are what counts: those of a family are the same code. What no virtual board can count, and what nobody
    named, is taken to be like a Cortex-M4.
    """
    if target is None:
        return TARGETS["cortex-m4"]
    found = target_named(target)
    if found.name in modelled() and found.family is TARGETS[found.name].family:
        return found
    near: tuple[str, ...] = ()
    match found.family:
        case Family.HELIUM:
            near = ("cortex-m55",)
        case Family.PORTABLE if found.architecture is Architecture.CORTEX_M:
            near = ("cortex-m0plus", "rv32imc")
        case Family.PORTABLE:
            near = ("rv32imc",)
        case _:
            pass
    return TARGETS[next(name for name in (*near, "cortex-m4") if name in modelled())]


@cache
def _read(name: str, compiler: str) -> CostModel:
    data = json.loads((resources.files(__package__) / "coefficients" / compiler / f"{name}.json").read_text())
    return CostModel(name, compiler, data["instructions"], FitError(**data["error"]), data["source"])


def target_named(target: Target | str) -> Target:
    """The target of that name."""
    if isinstance(target, Target):
        return target
    if target not in TARGETS:
        raise InputError(f"unknown target '{target}'. There are: {', '.join(TARGETS)}")
    return TARGETS[target]
