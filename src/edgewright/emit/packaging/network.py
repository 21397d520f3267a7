"""The package of one network: its README and examples."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Any

from ...kernels.printing.constants import C_TYPES
from ...network import Tensor
from ..header import lies_densely
from ..lanes import has_threads
from ..library import Library
from ..names import parameters
from .contents import PackageContents, packaged, rendered

REPORTS = """\
`report.html` shows what was verified and what each layer costs; `report.json` has the same as data; `plan.json` is the
plan that the code carries out."""


@dataclass(frozen=True, slots=True)
class ExampleArgument:
    """An input or output as the examples use it."""

    parameter: str
    array: str  # a variable that clashes with nothing
    macro: str  # what its macros begin with
    ctype: str
    accessor: str  # the function that says where it lies in the arena; empty where there is none
    row: int  # elements of a row, where the network asks for rows; else 0
    what: str

    @property
    def given(self) -> str:
        """What the run function gets: the array, or the function that hands out its rows."""
        return f"pull_{self.parameter}, 0" if self.row else self.array

    @property
    def in_place(self) -> str:
        """The same where it may stay in the arena."""
        return "0" if self.accessor else self.given

    @property
    def file(self) -> str:
        return f"{self.parameter.upper()}.bin"

    @property
    def is_float(self) -> bool:
        return self.ctype in ("float", "double")

    @property
    def ramp(self) -> str:
        if self.is_float:
            return f"({self.ctype})(i % 255 - 127) / 127"
        return (
            f"({self.ctype})(i % 2)" if "64" in self.ctype or "32" in self.ctype else f"({self.ctype})(i % 255 - 127)"
        )

    @property
    def printed(self) -> str:
        return "double" if self.is_float else "long"

    @property
    def format(self) -> str:
        return "%g" if self.is_float else "%ld"


def package_files(library: Library, edgewright: str) -> dict[str, str | bytes]:
    """Every file of a network's package but the reports, by path."""
    plan, network, name = library.plan, library.network, library.name
    facts = {
        "name": name,
        "macro": name.upper(),
        "ram": plan.peak_bytes,
        "optimal": plan.optimal,
        "scope": plan.scope,
        "weights": library.weight_bytes,
        "macs": plan.macs,
        **_arguments(library),
    }
    uses_threads = plan.lanes > 1 and has_threads(library.target)
    return packaged(
        PackageContents(
            name=name,
            title=network.name,
            kind="a neural network",
            target=library.target,
            board=plan.board,
            files=library.files,
            headers=(f"{name}.h",),
            entry=f"{name}_run()",
            optimise=library.options.optimise_flag(library.target),
            ram=plan.peak_bytes,
            weights=library.weight_bytes,
            macs=plan.macs,
            about=_text("network.md", facts),
            reports=REPORTS,
            main=_text("main.c", facts),
            sketch=_text("sketch.ino", facts),
            uses_threads=uses_threads,
            example_uses_threads=uses_threads,
        ),
        edgewright,
    )


def _text(template: str, facts: dict[str, Any]) -> str:
    file = resources.files(__package__) / "templates" / f"{template}.jinja"
    return rendered(file.read_text(encoding="utf-8"), facts)


def _arguments(library: Library) -> dict[str, Any]:
    network = library.network
    names = parameters(library.name, network, library.arenas, library.options.renamed)
    inputs = [example_argument(library, "input", network.tensors[n], p) for n, p in names.inputs.items()]
    outputs = [example_argument(library, "output", network.tensors[n], p) for n, p in names.outputs.items()]
    both = [*names.inputs.items(), *names.outputs.items()]
    return {
        "accessors": [f"`{a.accessor}()`" for a in (*inputs, *outputs) if a.accessor],
        "pulled": [f"`{a.parameter}`" for a in inputs if a.row],
        "call": [f"{p}, {p}_context" if n in library.plan.pulled else p for n, p in both],
        "inputs": inputs,
        "outputs": outputs,
    }


def example_argument(library: Library, way: str, tensor: Tensor, parameter: str) -> ExampleArgument:
    accessor = f"{library.name}_{way}_{parameter}"
    declared = lies_densely(library.plan, library.network, tensor.name)
    return ExampleArgument(
        parameter=parameter,
        array=f"{way}_{parameter}",
        macro=f"{library.name.upper()}_{way.upper()}_{parameter.upper()}",
        ctype=C_TYPES[tensor.dtype.value],
        accessor=accessor if declared else "",
        row=tensor.size // tensor.shape[1] if way == "input" and tensor.name in library.plan.pulled else 0,
        what=_described(tensor),
    )


def _described(tensor: Tensor) -> str:
    text = f"{tensor.dtype.value}, {'x'.join(map(str, tensor.shape)) or 'one number'}"
    if tensor.quant is not None and not tensor.quant.is_per_channel:
        text += f"; real = {tensor.quant.scale[0]:.9g} * (stored - {tensor.quant.zero[0]})"
    return text
