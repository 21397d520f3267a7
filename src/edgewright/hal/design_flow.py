"""The design flow: from files to an analysis, and from an analysis and a layout to a design."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from .analysis.bodies import read_functions
from .analysis.clusters import Uses, clusters_of, joints_of, with_known_values
from .analysis.colouring import regions_of
from .analysis.conflicts import Conflicts
from .analysis.flattening import flatten
from .analysis.interrupts import interrupts_of, shared_fields
from .analysis.moments import bonded, bonds_of, moments_of, partial_writes, split_moments
from .analysis.spaces import Joint, Spaces, Use
from .design import Analysis, Design
from .language.description import Bus, Refusal, Refused
from .language.groups import describe
from .language.misuse import misuses
from .language.source import read_source
from .layout.assembly import lay_out_naive
from .layout.judge import faults
from .layout.layout import Layout
from .merge import Merging, merged


def analyse(
    paths: Sequence[Path],
    includes: Sequence[Path] = (),
    defines: Sequence[str] = (),
    bus: Bus | None = None,
    interrupts: Sequence[str] = (),
    no_interrupts: Sequence[str] = (),
) -> Analysis:
    """All that is known of a driver before there is a layout; Refused for what cannot be rewritten.

    `interrupts` are functions that run in interrupts, beside those that show it themselves, and `no_interrupts` are
    functions that only look as if they did.
    """
    source = read_source(paths, includes, defines)
    description = describe(source, bus)
    refusals = misuses(source, description)
    if refusals:
        raise Refused(refusals)
    functions = read_functions(source, description)
    found = interrupts_of(source, functions, interrupts, no_interrupts)
    description = shared_fields(description, functions, found)
    judges = {function.name: Conflicts(function, description) for function in functions}
    regions = {name: regions_of(judge) for name, judge in judges.items()}
    spaces, uses = flatten(description, functions)
    clusters = {name: clusters_of(judge, regions[name], uses) for name, judge in judges.items()}
    bonds = bonded(spaces)
    moments = {name: moments_of(of, bonds) for name, of in clusters.items()}
    refusals = tuple(
        refusal
        for name, of in moments.items()
        for refusal in (*split_moments(of, judges[name], bonds), *partial_writes(of, description, spaces, bonds))
    )
    if refusals:
        raise Refused(refusals)
    joints = tuple(joint for name, judge in judges.items() for joint in _joints(judge, clusters[name], uses))
    routines = frozenset(function.name for function in functions if function.usr in found.routines)
    at_once = tuple(moment for of in moments.values() for moment in of)
    questions = tuple(
        f"is '{name}' an interrupt handler? Nobody calls it, so it is taken for one; "
        f"'--isr {name}' confirms that, '--not-isr {name}' denies it"
        for name in found.likely
    )
    return Analysis(
        *(source, description, functions, regions, spaces, uses, joints, routines, at_once, judges, clusters, questions)
    )


def _joints(judge: Conflicts, clusters: Sequence[list[Use]], uses: Uses) -> Iterator[Joint]:
    """The joints of a function's clusters, each with what the function knows beside it."""
    own = [uses[judge.function.name, access.number] for access in judge.function.accesses]
    ends = {use.access.number: cluster[-1].access.number for cluster in clusters for use in cluster}
    for joint, cluster in zip(joints_of(clusters), clusters, strict=True):
        yield with_known_values(joint, cluster, own, judge, ends)


def design(analysis: Analysis, layout: Layout) -> Design:
    """The driver with this layout: everything merged that may be."""
    merging = {
        name: merged(judge, analysis.regions[name], analysis.clusters[name], analysis.uses, analysis.spaces, layout)
        for name, judge in analysis.judges.items()
    }
    return Design(analysis, layout, merging)


def designed(analysis: Analysis, lay_out: Callable[[Sequence[Joint]], Layout]) -> Design:
    """The driver with the layout that `lay_out` makes for it, sound for what is merged in the end.

    Layouts rest on what could be merged; where moves hinder each other some of it is not, and a write that was to fill
    its register would have to put something back. Then the layout is made again, for what was merged, and at last for
    single writes: these have what they need whatever is merged.
    """
    joints: Sequence[Joint] = analysis.joints
    for attempt in range(3):
        made = design(analysis, lay_out(joints))
        _check_moments(made)
        merged_joints = real_joints(made)
        if not faults(analysis.description, analysis.spaces, made.layout, merged_joints):
            return made
        joints = merged_joints if attempt == 0 else _separate_writes(analysis.joints, analysis.spaces)
    raise AssertionError("a layout for single writes is sound for merged ones")


def real_joints(made: Design) -> tuple[Joint, ...]:
    """What a design really accesses at once."""
    analysis = made.analysis
    merges = [merge for merging in made.merging.values() for merge in merging.merges]
    inside = {(use.access.function, use.access.number) for merge in merges for use in merge.uses}
    single = [[use] for key, use in analysis.uses.items() if key not in inside]
    several = zip(joints_of(list(merge.uses) for merge in merges), merges, strict=True)
    return *(replace(joint, known=merge.kept) for joint, merge in several), *joints_of(single)


def _check_moments(made: Design) -> None:
    """Raises where accesses of fields that are together are not one: what lies between them is moved itself."""
    merges = {
        (use.access.function, use.access.number): merge
        for merging in made.merging.values()
        for merge in merging.merges
        for use in merge.uses
    }
    refusals = []
    for moment in made.analysis.moments:
        homes = [merges.get((use.access.function, use.access.number)) for use in moment]
        if len(moment) > 1 and (homes[0] is None or any(home is not homes[0] for home in homes)):
            names = ", ".join(f"'{use.access.field}'" for use in moment)
            what = f"{names} are together, and what stands between them keeps them apart"
            refusals.append(Refusal(moment[-1].access.place, what, "let one follow the other"))
    if refusals:
        raise Refused(refusals)


def _separate_writes(joints: Sequence[Joint], spaces: Spaces) -> tuple[Joint, ...]:
    """The joints with every write by itself, but for those of fields that are together."""
    return tuple(part for joint in joints for part in (_single(joint, spaces) if joint.writes else [joint]))


def _single(joint: Joint, spaces: Spaces) -> list[Joint]:
    home = {slot: bond for bond in bonds_of(spaces[joint.space]) for slot in bond}
    parts: dict[object, list[str]] = {}
    for slot in joint.slots:
        parts.setdefault(home.get(slot, slot), []).append(slot)
    return [replace(joint, slots=tuple(slots), known=(), gates=()) for slots in parts.values()]


def naive(analysis: Analysis) -> Design:
    """Each field in a register of its own, each access as the source has it: what designs are compared with.

    Such maps are large; devices that would overlap then lie further up.
    """
    layout = lay_out_naive(analysis.description, analysis.spaces)
    end, moved = 0, {}
    for device in sorted(analysis.description.devices, key=lambda device: device.address):
        start = device.address if end <= device.address else -(-end // _PAGE) * _PAGE
        moved[device.name] = replace(device, address=start)
        end = start + layout.spaces[device.group].size
    devices = tuple(moved[device.name] for device in analysis.description.devices)
    if devices != analysis.description.devices:
        analysis = replace(analysis, description=replace(analysis.description, devices=devices))
    return Design(analysis, layout, {function.name: Merging(()) for function in analysis.functions})


_PAGE = 4096
