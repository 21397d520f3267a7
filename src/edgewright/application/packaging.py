"""The package of an application: its README and examples show an order of calls that the library allows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import resources

from ..emit.names import parameters
from ..emit.packaging import ExampleArgument, PackageContents, example_argument, packaged, rendered
from ..platform.target import Architecture
from ..program.deployment import Part
from ..program.options import Options
from .app_ends import c_name, given_ends
from .app_gate import AppGate
from .app_interface import call_order, described_end, handed_sentences
from .library import AppLibrary


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """A member as the examples call it."""

    member: str
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


def application_files(library: AppLibrary, edgewright: str) -> dict[str, str | bytes]:
    """Every file of the application's package but the reports, by path."""
    application, deployment = library.application, library.deployment
    gate = AppGate(library.name, deployment, library.members)
    calls = [_call(library, member) for member in call_order(deployment)]
    urgent = {relation.parts[0] for relation in deployment.preemptions}
    count = len(deployment.networks)
    facts = {
        "name": library.name,
        "macro": library.name.upper(),
        "calls": calls,
        "urgent": [call for call in calls if call.member in urgent and not call.reads],
        "rows": any(end.row for call in calls for end in call.inputs),
        "is_polled": gate.is_polled,
        "is_shared": gate.is_shared,
        "is_pipelined": bool(deployment.queues),
        "buffers": application.file.buffers,
        "ram": library.layout.peak_bytes,
        "state": library.state_bytes,
        "arenas": library.layout.arenas,
        "weights": library.weight_bytes,
    }
    headers = (f"{library.name}.h", *(f"{one.name}.h" for one in library.members.values()))
    has_system = library.target.architecture in (Architecture.HOST, Architecture.AARCH64)
    contents = PackageContents(
        name=library.name,
        title=f"{application.file.name}: {', '.join(application.networks)}",
        kind="a neural network" if count == 1 else f"{count} neural networks in one arena",
        target=library.target,
        board=application.board.name if application.board else None,
        files=library.files,
        headers=headers,
        entry=f"{library.name}_run_...()",
        optimise=Options().optimise_flag(library.target),
        ram=library.layout.peak_bytes + library.state_bytes,
        weights=library.weight_bytes,
        macs=sum(one.plan.macs for one in library.members.values()),
        about=rendered(_template("README.md"), facts).rstrip(),
        reports="`report.json` has the figures of the plan and of the trials that were made.",
        main=rendered(_template("main.c"), facts),
        sketch=rendered(_template("sketch.ino"), facts),
        uses_threads=gate.is_shared and has_system,
        example_uses_threads=gate.is_shared,
    )
    return packaged(contents, edgewright)


def _call(library: AppLibrary, member: Part) -> ExampleCall:
    own = library.members[member.name]
    names = parameters(own.name, member.network, own.plan.arenas)
    inputs, outputs = given_ends(library.deployment, member)
    return ExampleCall(
        member.name,
        f"{library.name}_run_{c_name(library.application, member)}",
        tuple(_argument(library, member, "input", tensor, names.inputs[tensor]) for tensor in inputs),
        tuple(_argument(library, member, "output", tensor, names.outputs[tensor]) for tensor in outputs),
        "; ".join(handed_sentences(library.deployment, member)),
    )


def _argument(library: AppLibrary, member: Part, way: str, tensor: str, parameter: str) -> ExampleArgument:
    own = library.members[member.name]
    found = example_argument(own, way, member.network.tensors[tensor], parameter)
    return replace(
        found,
        parameter=f"{own.name}_{parameter}",
        array=f"{own.name}_{way}_{parameter}",
        accessor=f"{library.name}_{way}_{own.name}_{parameter}" if found.accessor else "",
        what=described_end(member.network, tensor),
    )


def _template(name: str) -> str:
    return (resources.files(__package__) / "templates" / f"{name}.jinja").read_text(encoding="utf-8")
