"""What an emitter is told about the step it writes: the operator, its region, where everything lies, and the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..network import Arithmetic, Layer, Network, Shape, Tensor
from ..network.operators import DynamicProduct, Op
from ..platform.target import Target
from ..program import Sweep
from .options import Options
from .printing.constants import Constants
from .printing.place import Place
from .printing.source import Expr, braced


@dataclass
class Unit:
    """The library under construction: what all its sites add to."""

    prefix: str  # of every identifier
    target: Target
    options: Options
    constants: Constants
    kernels: set[str] = field(default_factory=set)  # names of kernel files, without suffix
    tables: list[str] = field(default_factory=list)  # `static const` definitions of the schedule's source

    def table(self, ctype: str, fields: Sequence[Expr]) -> str:
        """The name of a `static const` struct with these fields, in the order of its declaration; equal ones once."""
        body = braced(fields)
        for text in self.tables:
            if text.startswith(f"static const {ctype} ") and text.endswith(f" = {body};"):
                return text.split(" = ")[0].split()[-1]
        name = f"{self.prefix}_t{len(self.tables)}"
        self.tables.append(f"static const {ctype} {name} = {body};")
        return name


@dataclass(frozen=True)
class Site:
    unit: Unit
    network: Network
    layer: Layer
    region: tuple[tuple[Expr, Expr], ...]  # of the output: half-open, already clipped; may be empty at run time
    most: Shape  # indices along each axis of the region, at most: fewer where it was clipped
    sweep: Sweep
    inputs: tuple[Place, ...]  # constants included, as they are in the network: `unit.constants` not yet told
    output: Place
    hole: (
        tuple[str, int] | None
    )  # (C expression of type uint8_t *, bytes): free memory during this stage, 8-aligned
    plane: str | None  # sweep CHANNELS: the scratch of one channel plane (uint8_t *) that the plan reserves
    is_whole: bool  # the region is the whole output
    dynamic: DynamicProduct | None = None  # the operator is its product, of numbers stored as they came
    share: tuple[tuple[Expr, Expr], ...] | None = None  # part of input 0 that is added to running sums
    sums: str | None = (
        None  # C of those sums (int32_t *, or float *: the output), in the order of the whole output
    )

    @property
    def op(self) -> Op:
        return self.layer.op

    @property
    def target(self) -> Target:
        return self.unit.target

    @property
    def arithmetic(self) -> Arithmetic:
        return self.network.arithmetic

    @property
    def result(self) -> Tensor:
        return self.output.tensor

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return self.network.shapes(self.layer)

    @property
    def is_quantised(self) -> bool:
        """Whether stored integers stand for real numbers, so that somebody's rounding rules apply."""
        tensors = (self.result, *(place.tensor for place in self.inputs))
        return any(t.quant is not None and not t.dtype.is_float for t in tensors)

    @property
    def is_backward(self) -> bool:
        return self.sweep is Sweep.BACKWARD

    def shares(self, which: int = 0) -> bool:
        """Whether input `which` and the output may have bytes in common."""
        return self.inputs[which].meets(self.output)

    def constant(self, which: int) -> Place:
        """Input `which`, a constant, as it lies in flash in its own layout."""
        place = self.inputs[which]
        values = self.network.constants[place.tensor.name]
        name = self.unit.constants.add(values, f"{self.layer.name}: {place.tensor.name}")
        return Place(place.tensor, name, place.strides)

    def place(self, which: int) -> Place:
        """Input `which` wherever it lies; a constant is put into flash as it is."""
        return self.constant(which) if self.inputs[which].is_constant else self.inputs[which]

    def use(self, *kernels: str) -> None:
        """Takes kernel files (`kernels/NAME.h`, and `NAME.c` where there is one) into the library."""
        self.unit.kernels.update(kernels)

    def scratch(self, size: int) -> str | None:
        """C expression (uint8_t *, 8-aligned) of that many bytes of free arena during this stage, if there are any."""
        if self.hole is None or self.hole[1] < size:
            return None
        return self.hole[0]
