"""The package of a library that switches between scenarios: its README, and examples that request them."""

from __future__ import annotations

from dataclasses import replace

from ...platform.target import Architecture
from ...program.options import Options
from ...program.switching import SwitchPolicy
from ..packaging import PackageContents, example_argument, packaged
from .interface import described_end
from .library import DeploymentLibrary
from .switching import SwitchWriter


def switching_package(
    library: DeploymentLibrary, writer: SwitchWriter, edgewright: str, title: str, board: str | None = None
) -> dict[str, str | bytes]:
    """Every file of the library's package but the reports, by path."""
    code, first = library.code, library.code.parts[0]
    own, names = library.parts[first.name], code.parameters(first)
    inputs, outputs = (
        [
            replace(
                example_argument(own, way, first.network.tensors[tensor], parameter),
                what=described_end(code.references[first.name], tensor),
            )
            for tensor, parameter in group.items()
        ]
        for way, group in (("input", names.inputs), ("output", names.outputs))
    )
    facts = {
        **writer.facts,
        "inputs": inputs,
        "outputs": outputs,
        "arguments": ", ".join([*(x.given for x in inputs), *(f"{x.array}[slot]" for x in outputs)]),
        "rows": any(x.row for x in inputs),
        "ram": library.deployment.ram_bytes,
        "state": library.state_bytes,
        "weights": library.weight_bytes,
    }
    has_system = library.target.architecture in (Architecture.HOST, Architecture.AARCH64)
    is_overlap = writer.policy is SwitchPolicy.OVERLAP
    contents = PackageContents(
        name=library.name,
        title=f"{title}: {', '.join(part.name for part in code.parts)}",
        kind=f"{len(code.parts)} scenarios that switch at run time,",
        target=library.target,
        board=board,
        files=library.files,
        headers=(f"{library.name}.h", *(f"{one.name}.h" for one in library.parts.values())),
        entry=f"{library.name}_step()",
        optimise=Options().optimise_flag(library.target),
        ram=library.deployment.ram_bytes + library.state_bytes,
        weights=library.weight_bytes,
        macs=max(one.plan.macs for one in library.parts.values()),
        about=code.render("switch_readme.md", **facts).rstrip(),
        reports="`report.json` has the delays of all switches, the memory, and what the library was put through.",
        main=code.render("switch_main.c", **facts),
        sketch=code.render("switch_sketch.ino", **facts),
        uses_threads=is_overlap and has_system,
        example_uses_threads=is_overlap,
    )
    return packaged(contents, edgewright)
