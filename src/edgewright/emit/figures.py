"""The result of compiling a model as plain data: what was checked, what was measured, and what each layer costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..program import CheaperPlan


@dataclass(frozen=True, slots=True)
class Check:
    """One run of the code somewhere, whose outputs were compared with the reference."""

    where: str
    runs: int  # inputs tried
    difference: float  # the largest
    unit: str  # "steps" of the scale, or nothing for real numbers
    allowed: float
    passes: bool


@dataclass(frozen=True, slots=True)
class ByLayers:
    """Quantised layers compared one by one, each from the reference's own inputs."""

    compared: int  # layers
    is_exact: bool  # all of them equal, real numbers too
    difference: float  # the largest, in steps
    allowed: float
    passes: bool
    first: str | None  # the first layer that differs
    itself: float  # how far the reference, with and without its optimisations, is off itself end to end
    unit: str  # of that


@dataclass(frozen=True, slots=True)
class LayerCost:
    """A stage, its layers, and the instructions that it took on the virtual board."""

    name: str
    operator: str
    output: str
    macs: int
    instructions: int | None

    @property
    def per_mac(self) -> float | None:
        return self.instructions / self.macs if self.instructions is not None and self.macs else None


@dataclass(frozen=True, slots=True)
class Figures:
    name: str  # of the library
    model: str
    target: str
    board: str | None
    arithmetic: str
    rounding: str
    kernels: str
    macs: int
    ram_predicted: int
    flash_weights: int
    layers: tuple[LayerCost, ...]
    reference: str = ""  # whose results were compared with; empty when nothing was
    missing: str = ""  # why that is not the model's own runtime, and what to do about it
    checks: tuple[Check, ...] = ()
    by_layers: ByLayers | None = None  # of quantised ONNX models
    notes: tuple[str, ...] = ()  # what could not be checked or measured, and why
    emulator: str | None = None
    compiler: str | None = None  # and how it was asked to optimise
    ram_linked: int | None = None
    stack_bytes: int | None = None  # high-water mark of a run
    stack_bound: int | None = None  # no run can take more
    flash_code: int | None = None  # of the library itself
    flash_runtime: int | None = None  # of what it calls: memcpy, mathematics, the compiler's helpers
    instructions: int | None = None  # on all cores
    critical_path: int | None = None  # those of two cores that lie one after the other; None where one runs all
    ram_quality: str = ""  # how good the plan is: proven least, and among which plans, or how far above a bound
    cheaper: CheaperPlan | None = None  # as the plan has it
    instruction_time: float | None = None  # seconds, on the board's core; None where its clock is not known

    @property
    def verified(self) -> bool:
        return bool(self.checks) and all(check.passes for check in self.checks)

    @property
    def worst(self) -> Check | None:
        """The check with the largest difference."""
        return max(self.checks, key=lambda c: (not c.passes, c.difference), default=None)

    @property
    def per_mac(self) -> float | None:
        return self.instructions / self.macs if self.instructions is not None and self.macs else None

    @property
    def seconds(self) -> float | None:
        """How long a run is estimated to take on the board."""
        return self.time_of(self.instructions if self.critical_path is None else self.critical_path)

    def time_of(self, instructions: int | None) -> float | None:
        """How long so many instructions are estimated to take; None where that is not known."""
        if instructions is None or self.instruction_time is None:
            return None
        return instructions * self.instruction_time

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        worst = self.worst
        data: Mapping[str, Any] = asdict(self)
        return {
            "verified": self.verified,
            "max_difference": worst.difference if worst else None,
            "unit": worst.unit if worst else "",
            **{key: value for key, value in data.items() if key not in ("layers", "checks", "notes")},
            "instructions_per_mac": self.per_mac,
            "seconds": self.seconds,
            "checks": data["checks"],
            "notes": list(self.notes),
            "layers": [
                {**row, "instructions_per_mac": c.per_mac, "seconds": self.time_of(c.instructions)}
                for row, c in zip(data["layers"], self.layers, strict=True)
            ],
        }


def verdict(figures: Figures) -> str:
    """One sentence: how the code compares with the reference."""
    worst = figures.worst
    if worst is None:
        return "not verified"
    places = " and ".join(check.where for check in figures.checks)
    layers = f"; {layer_by_layer(figures.by_layers)}" if figures.by_layers else ""
    if not figures.verified:
        where = worst.where if worst.where.startswith("as ") else f"on {worst.where}"
        return f"differs from {figures.reference} {where}: {difference(worst)}{layers}"
    exact = "bit for bit as" if worst.difference == 0 else f"{difference(worst)} from"
    return f"{exact} {figures.reference}, on {places}{layers if worst.difference else ''}"


def layer_by_layer(found: ByLayers) -> str:
    """The result of comparing single layers, as a phrase."""
    if found.first is None:
        return f"layer by layer {'equal' if found.is_exact else 'within the tolerance'} ({found.compared} compared)"
    return f"layer by layer at most {amount(found.difference, 'steps')} off, first at '{found.first}'"


def difference(check: Check) -> str:
    """The difference that a check found, as a phrase."""
    if check.difference == 0:
        return "equal"
    return f"at most {amount(check.difference, check.unit)} off ({check.allowed:.3g} allowed)"


def amount(number: float, unit: str) -> str:
    """3 steps, 1 step, 0.02."""
    return f"{number:.3g} {unit.removesuffix('s') if number == 1 else unit}" if unit else f"{number:.3g}"
