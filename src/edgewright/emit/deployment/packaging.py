"""The package of a deployment's library: its README and examples show an order of calls that the library allows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...platform.target import Architecture
from ...program.deployment import FirmwareBuffer, Part
from ...program.options import Options
from ..packaging import ExampleArgument, PackageContents, example_argument, packaged
from .c_deployment import CDeployment
from .interface import call_order, described_end
from .library import DeploymentLibrary


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """A part as the examples call it."""

    part: str
    function: str
    inputs: tuple[ExampleArgument, ...]
    outputs: tuple[ExampleArgument, ...]
    reads: str  # what others have brought or made

    @property
    def ends(self) -> tuple[ExampleArgument, ...]:
        return (*self.inputs, *self.outputs)

    @property
    def text(self) -> str:
        return f"{self.function}({', '.join(end.given for end in self.ends)})"

    @property
    def in_place(self) -> str:
        """The same with everything in the arena that lies there."""
        return f"{self.function}({', '.join(end.in_place for end in self.ends)})"


def deployment_package(
    library: DeploymentLibrary, edgewright: str, title: str, board: str | None = None
) -> dict[str, str | bytes]:
    """Every file of the library's package but the reports, by path."""
    code, deployment = library.code, library.deployment
    networks = [network.name for network in deployment.networks]
    calls = [_call(library, part) for part in call_order(code)]
    urgent = {one.parts[0] for one in deployment.preemptions}
    facts = {
        "calls": calls,
        "urgent": [call for call in calls if call.part in urgent and not call.reads],
        "rows": any(end.row for call in calls for end in call.inputs),
        "is_polled": code.is_polled,
        "is_shared": code.is_shared,
        "is_pipelined": bool(deployment.queues),
        "buffers": [
            {"function": code.buffer_function(own), "bytes": own.bytes, "when": _when(code, own)}
            for own in deployment.buffers
        ],
        "ram": deployment.ram_bytes,
        "state": library.state_bytes,
        "arenas": {memory: layout.bytes for memory, layout in code.arenas.items()},
        "weights": library.weight_bytes,
    }
    has_system = library.target.architecture in (Architecture.HOST, Architecture.AARCH64)
    contents = PackageContents(
        name=library.name,
        title=f"{title}: {', '.join(networks)}",
        kind="a neural network" if len(networks) == 1 else f"{len(networks)} neural networks in one arena",
        target=library.target,
        board=board,
        files=library.files,
        headers=(f"{library.name}.h", *(f"{one.name}.h" for one in library.parts.values())),
        entry=f"{library.name}_run_...()",
        optimise=Options().optimise_flag(library.target),
        ram=deployment.ram_bytes + library.state_bytes,
        weights=library.weight_bytes,
        macs=sum(one.plan.macs for one in library.parts.values()),
        about=code.render("README.md", **facts).rstrip(),
        reports="`report.json` has the figures of the plan and of the trials that were made.",
        main=code.render("main.c", **facts),
        sketch=code.render("sketch.ino", **facts),
        uses_threads=code.is_shared and has_system,
        example_uses_threads=code.is_shared,
    )
    return packaged(contents, edgewright)


def _when(code: CDeployment, own: FirmwareBuffer) -> str:
    """When a buffer of the firmware is in use."""
    if own.parts is None:
        return "always"
    owners = dict.fromkeys(code.deployment.part_named[name].owner for name in own.parts)
    return f"during {', '.join(owners)}"


def _call(library: DeploymentLibrary, part: Part) -> ExampleCall:
    code, names = library.code, library.code.parameters(part)
    inputs, outputs = code.given(part)
    return ExampleCall(
        part.name,
        code.function(part),
        tuple(_argument(library, part, "input", tensor, names.inputs[tensor]) for tensor in inputs),
        tuple(_argument(library, part, "output", tensor, names.outputs[tensor]) for tensor in outputs),
        "; ".join(code.handed(part)),
    )


def _argument(library: DeploymentLibrary, part: Part, way: str, tensor: str, parameter: str) -> ExampleArgument:
    own = library.parts[part.name]
    argument = example_argument(own, way, part.network.tensors[tensor], parameter)
    return replace(
        argument,
        parameter=f"{own.name}_{parameter}",
        array=f"{own.name}_{way}_{parameter}",
        accessor=f"{library.name}_{way}_{own.name}_{parameter}" if argument.accessor else "",
        what=described_end(library.code.references[part.name], tensor),
    )
