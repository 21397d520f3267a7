"""From a plan to the files of a C library (header, schedule, kernels, weights), and whether the plan is for this model.

Kernels print their calls; nothing here decides anything that the plan has decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InputError
from ..kernels.closed_plan import ClosedPlan
from ..kernels.module import Module
from ..kernels.printing.constants import Constants
from ..kernels.printing.source import CWriter
from ..memory import with_copies
from ..network import Network
from ..platform import Board
from ..platform.target import Architecture, Target
from ..program import Plan
from ..program.codec import network_to_dict
from ..program.nesting import Nesting, nesting_of
from ..program.options import Options
from ..program.selection import packed_bytes
from .files import kernel_files, weight_files
from .header import STOPPED, header
from .lanes import lanes_file
from .names import library_name, local_names, parameters
from .patterns import NAMES, PrintedStage, StagePatterns, StageProbe, StageReader, definitions, kernel_types
from .schedule import RunFunction, schedule_file
from .streaming import RowOutlet


@dataclass(frozen=True)
class Library:
    """The sources of one network for one target. Same plan, same bytes."""

    name: str  # prefix of every identifier, and of the files
    plan: Plan
    network: Network
    target: Target
    options: Options
    files: Mapping[str, str | bytes]  # by name: the header, C sources, perhaps a binary file of weights
    weight_bytes: int
    arenas: Mapping[str, int]  # bytes of each memory
    stages: tuple[str, ...]  # names, in order

    def __repr__(self) -> str:
        return f"Library('{self.name}' for {self.target.name}, {len(self.files)} files)"

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(name for name in self.files if name.endswith((".c", ".S")))


@dataclass(frozen=True)
class SharedCode:
    """What several libraries of one firmware have in common: kernels and weights, each stored once under one prefix."""

    prefix: str
    constants: Constants
    kernels: set[str] = field(default_factory=set)
    nesting: Nesting | None = None  # where some of the networks are slices of others

    @classmethod
    def called(cls, prefix: str) -> SharedCode:
        return cls(prefix, Constants(prefix))

    @classmethod
    def of_networks(cls, prefix: str, networks: Sequence[Network]) -> SharedCode:
        """Where some networks are slices of others, weights of theirs may be views of those."""
        nesting = nesting_of(networks)
        if nesting is None:
            return cls.called(prefix)
        settings = {"views", "split"} if nesting.split else {"views"}
        return cls(prefix, Constants(prefix, has_views=True), settings, nesting)

    def files(self) -> dict[str, str | bytes]:
        """The files that all of them include, once all are emitted."""
        return {**kernel_files(self.prefix, self.kernels), **weight_files(self.constants)}


@dataclass(frozen=True)
class LibraryShare:
    """How one library takes part in a firmware of several, whose arena is not its own."""

    code: SharedCode
    probe: str = ""  # C that is called where a stage begins, with `stage` for its number
    resident: frozenset[str] = frozenset()  # inputs and outputs that are never copied
    row_probe: str = ""  # C that is called between the rows of some stages, with `stage` for its number
    rows: frozenset[int] = frozenset()  # these stages
    outlet: RowOutlet | None = None  # for an output that leaves by rows
    may_stop: bool = False  # both probes are conditions, and end the run where they hold
    number: int = 0  # of the library
    step_probe: str = ""  # C that is called before a stage of any library, with `own` for its number and `stage`


def _probes(share: LibraryShare | None) -> dict[str, str]:
    """The macros that stand where a stage begins and between rows, with what they call."""
    if share is None:
        return {}
    found = {"EW_PROBE": share.probe, "EW_BETWEEN_ROWS": share.row_probe if share.rows else ""}
    form = f"if ({{}}) return {STOPPED}" if share.may_stop else "{}"
    return {name: form.format(called) for name, called in found.items() if called}


def emit(closed: ClosedPlan, name: str | None = None, share: LibraryShare | None = None) -> Library:
    """The library that carries a plan out on its target.

    With `share`, kernels and weights are left to the code that it shares, and there is no arena in the library.
    """
    return drafted(closed, name, share).library()


@dataclass(frozen=True)
class LibraryDraft:
    """A library whose run function is printed, before its files are: other networks may share code with it."""

    module: Module
    plan: Plan
    network: Network
    schedule: RunFunction
    body: CWriter
    code: SharedCode
    share: LibraryShare | None

    @property
    def prefix(self) -> str:
        return self.module.prefix

    @property
    def stages(self) -> Iterator[PrintedStage]:
        """The stages that take nothing from the run function but arenas."""
        share = self.share
        if (
            share is None
            or self.plan.lanes > 1
            or share.outlet is not None
            or bool(share.probe) != bool(share.step_probe)
        ):
            return
        for index, (_, first, end) in self.schedule.places.items():
            text = "\n".join(line.removeprefix("    ") for line in self.body.lines[first:end])
            words = {*re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", text))}
            if words.isdisjoint(self.schedule.variables | NAMES | {"return"}) and "#" not in text:
                probe = re.sub(r"\bstage\b", str(index), share.row_probe)
                text = text.replace(
                    f"EW_BETWEEN_ROWS({index});", f"if ({probe}) return 0;" if share.may_stop else f"{probe};"
                )
                yield PrintedStage(self.prefix, index, self.schedule.title(index), text)

    def library(self, patterns: StagePatterns | None = None) -> Library:
        """The library, its stages as functions of `patterns` where they are among them."""
        prefix, share, plan = self.prefix, self.share, self.plan
        schedule, target, module = self.schedule, self.module.target, self.module
        files: dict[str, str | bytes] = {
            f"{prefix}.h": header(
                prefix, plan, self.network, schedule.public, module.options, target, share is None, schedule.returns
            ),
            f"{prefix}.c": schedule_file(
                module, schedule, self.body, self.code.prefix, _probes(share), patterns, share.number if share else 0
            ),
            **(self.code.files() if share is None else {}),
            **({f"{prefix}_lanes.c": lanes_file(prefix, target)} if plan.lanes > 1 else {}),
        }
        packed = module.constants.packed
        if share is None and plan.packed not in ((), packed):
            raise InputError("the plan was made for other weights than these; make it again")
        return Library(
            prefix,
            replace(plan, packed=packed if share is None else ()),
            self.network,
            target,
            module.options,
            files,
            packed_bytes(packed),
            dict(plan.arenas),
            tuple(stage.name for stage in plan.program.stages),
        )


def drafted(closed: ClosedPlan, name: str | None = None, share: LibraryShare | None = None) -> LibraryDraft:
    """What `emit` prints before it writes files."""
    plan, facts = closed.plan, closed.facts
    prefix = library_name(facts.network, name)
    code = share.code if share else SharedCode.called(prefix)
    assert facts.nesting is code.nesting, "kernels are checked for the libraries that the code is shared with"
    module = Module(prefix, facts.target, facts.options, code.constants, code.kernels)
    if share is not None and shares_stages(facts.target) and len(plan.arenas) == 1:
        (module.arena,) = local_names(parameters(prefix, facts.network, plan.arenas)).arenas.values()
    own = (share.resident, share.rows, share.outlet, share.may_stop) if share else ()
    schedule = RunFunction(module, closed.sites, *own)
    return LibraryDraft(module, plan, facts.network, schedule, schedule.write(), code, share)


def shares_stages(target: Target) -> bool:
    """Whether stages of several networks share code: for small targets, where a call costs little beside a kernel."""
    return target.architecture in (Architecture.CORTEX_M, Architecture.RV32)


def with_patterns(drafts: Sequence[LibraryDraft], code: SharedCode) -> tuple[list[Library], StagePatterns]:
    """The libraries of all drafts, with the stages that several of them share."""
    arenas, stages, types = {draft.module.arena for draft in drafts}, [], kernel_types(code.kernels)
    for draft in drafts if len(arenas) == 1 and all(arenas) else ():
        reader = StageReader(code.constants, definitions(draft.module.tables), types)
        stages += [(stage, reader) for stage in draft.stages]
    probe = next((draft.share.step_probe for draft in drafts if draft.share), "")
    patterns = StagePatterns(code.prefix, sorted(arenas), stages, StageProbe(probe, drafts[0].schedule.may_stop))
    return [draft.library(patterns) for draft in drafts], patterns


def check_plan(plan: Plan, network: Network, board: Board | None) -> None:
    """Refuses a plan of another model, or for another board; one made without a board may go to any."""
    if board is not None and plan.board not in (None, board.name):
        raise InputError(f"the plan was made for the board '{plan.board}', not for '{board.name}'; make it again")
    added = {layer.name for layer in plan.network.layers} - {layer.name for layer in network.layers}
    copied = [layer.inputs[0] for layer in plan.network.layers if layer.name in added and layer.inputs]
    copied = [name for name in copied if name in network.tensors]
    _check_ends(plan.network, network)
    mine, theirs = _comparable(with_copies(network, copied)), _comparable(plan.network)
    for key, value in mine.items():
        if value != theirs.get(key):
            raise InputError(
                f"the plan was made for another model: '{plan.network.name}' and '{network.name}' "
                f"differ in their {key}; make the plan again"
            )


def _check_ends(planned: Network, network: Network) -> None:
    """Refuses a plan whose inputs or outputs are quantised where the model's are not, or the other way round."""
    for name in dict.fromkeys((*network.inputs, *network.outputs)):
        if (name in planned.file_tensors) != (name in network.file_tensors):
            way = "input" if name in network.inputs else "output"
            how = "with" if name in planned.file_tensors else "without"
            raise InputError(
                f"the plan was made {how} --quantised-{way}, for '{name}'; say the same here, or make the plan again"
            )


def _comparable(network: Network) -> dict[str, Any]:
    """What a plan depends on: all but names of the whole and remarks."""
    data = network_to_dict(network)
    return {key: value for key, value in data.items() if key not in ("name", "notes")}
