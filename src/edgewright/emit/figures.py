"""What compiling a model came to, as plain data: what was checked, what was measured, what each layer costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    """The code ran somewhere, and its outputs were compared."""

    where: str
    runs: int  # inputs tried
    difference: float  # the largest
    unit: str  # "steps" of the scale, or nothing for real numbers
    allowed: float
    passes: bool


@dataclass(frozen=True, slots=True)
class LayerCost:
    """A stage: what it computes, and the instructions that took on the virtual board."""

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
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()  # what could not be checked or measured, and why
    emulator: str | None = None
    compiler: str | None = None  # and how it was asked to optimise
    ram_linked: int | None = None
    stack_bytes: int | None = None  # high-water mark of a run
    stack_bound: int | None = None  # no run can take more
    flash_code: int | None = None  # of the library itself
    flash_runtime: int | None = None  # of what it calls: memcpy, mathematics, the compiler's helpers
    instructions: int | None = None

    @property
    def verified(self) -> bool:
        return bool(self.checks) and all(check.passes for check in self.checks)

    @property
    def worst(self) -> Check | None:
        """The check that came off worst."""
        return max(self.checks, key=lambda c: (not c.passes, c.difference), default=None)

    @property
    def per_mac(self) -> float | None:
        return self.instructions / self.macs if self.instructions is not None and self.macs else None

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
            "checks": data["checks"],
            "notes": list(self.notes),
            "layers": [
                {**row, "instructions_per_mac": c.per_mac}
                for row, c in zip(data["layers"], self.layers, strict=True)
            ],
        }


def verdict(figures: Figures) -> str:
    """One sentence: how the code compares with the reference."""
    worst = figures.worst
    if worst is None:
        return "not verified"
    places = " and ".join(check.where for check in figures.checks)
    if not figures.verified:
        return f"differs from {figures.reference} on {worst.where}: {difference(worst)}"
    exact = "bit for bit as" if worst.difference == 0 else f"{difference(worst)} from"
    return f"{exact} {figures.reference}, on {places}"


def difference(check: Check) -> str:
    """How far off, in words."""
    if check.difference == 0:
        return "equal"
    unit = f" {check.unit.removesuffix('s') if check.difference == 1 else check.unit}" if check.unit else ""
    return f"at most {check.difference:.3g}{unit} off ({check.allowed:.3g} allowed)"
