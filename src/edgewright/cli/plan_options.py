"""The planning options, which all verbs that make plans share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ..errors import EdgewrightError
from .options import BYTE_SIZE, METHODS, TILE

if TYPE_CHECKING:  # slow to load, and `--help` does not need them
    from ..fusion.by_hand import TileRequest
    from ..fusion.request import PlanRequest
    from ..network import Network


class ExtraShare(click.ParamType[float]):
    """An amount of extra work as a share: 5%, 0.05 and 1.05x are the same.

    With `factors`, a bare number such as 1.5 is a factor.
    """

    name = "extra"
    _FORM = re.compile(r"([+-]?\d{1,9}(?:\.\d{0,9})?|[+-]?\.\d{1,9}) *(%|x|×)?")

    def __init__(self, factors: bool = False) -> None:
        self.factors = factors

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = self._FORM.fullmatch(value.strip())
        if match is None:
            self.fail(f"'{value}' is not an amount of extra work: write 5%, 0.05 or 1.05x", param, ctx)
        number, unit = float(match[1]), match[2]
        if unit is None and self.factors and "." in match[1] and 1 <= number < 10:
            unit = "x"  # 1.5 is a factor; 12.5 is ambiguous
        if unit is None and number >= 1:
            self.fail(f"'{value}' can mean two things: write {value}% or {value}x", param, ctx)
        share = number / 100 if unit == "%" else number if unit is None else number - 1
        if share < 0:
            less = "below 1x" if unit in ("x", "×") else "negative"
            self.fail(f"'{value}' is {less}: a plan cannot have less work than whole layers", param, ctx)
        return round(share, 12)  # 1.05x is exactly 5 %


class Alignment(click.ParamType[int]):
    """A valid alignment: a power of two up to the maximum."""

    name = "alignment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from ..memory.planner import checked_alignment

        try:
            return checked_alignment(int(value))
        except ValueError:
            self.fail(f"'{value}' is not a whole number", param, ctx)
        except EdgewrightError as error:
            self.fail(str(error), param, ctx)


pull_option = click.option(
    "--pull-input",
    "--pull-rows",
    "pull_rows",
    is_flag=True,
    help="Read images row by row through a callback; they are never in memory as a whole.",
)
_OPTIONS = (
    click.option("--ram", type=BYTE_SIZE, help="Available RAM, such as 64K. Overrides the board's."),
    click.option(
        "--minimise",
        type=click.Choice(["ram"]),
        help="Search for the least RAM, with layers in parts. Unless allowed otherwise: no extra MACs and about "
        "the time of whole layers.",
    ),
    click.option(
        "--max-overhead",
        type=ExtraShare(),
        metavar="5%|0.05|1.05x",
        help="Search with at most this many extra MACs: until the plan fits, or without a limit on RAM for the least.",
    ),
    click.option(
        "--max-slowdown",
        type=ExtraShare(factors=True),
        metavar="50%|0.5|1.5x",
        help="Search with at most this many extra instructions compared with whole layers, as estimated for the board "
        "or target; those of extra MACs count.  [default for the least RAM: 10%, or what --max-overhead allows]",
    ),
    click.option(
        "--method",
        type=click.Choice(METHODS),
        help="The search: joint over all groups of layers and all ways to run them, or the paper's, tiles only, "
        "buffer by buffer (S 4.3.3).  [default: joint]",
    ),
    click.option(
        "--tile",
        "tiles",
        type=TILE,
        multiple=True,
        metavar="FIRST..LAST:rows=4",
        help="Fuse these layers and divide them into N parts: rows=N, columns=N (or both), channels=N, or stripes=N "
        "(columns that run row by row; with rows=N before it, in bands). May be given again.",
    ),
    click.option(
        "--lanes",
        type=click.IntRange(1, 64),
        default=1,
        show_default=True,
        help="Cores that share the work of a layer, where it is faster.",
    ),
    click.option("--phases", is_flag=True, help="Run layers row by row where that saves memory (no extra MACs)."),
    click.option(
        "--phase-layers",
        multiple=True,
        metavar="NAME|FIRST..LAST",
        help="Run only these layers row by row. May be given again.",
    ),
    pull_option,
    click.option("--plain", is_flag=True, help="Best order and layout only: no shared or overlapping buffers."),
    click.option(
        "--alignment",
        type=Alignment(),
        metavar="1|2|4|...",
        help="Alignment of every buffer, a power of two; elements are always aligned.  [default: the board's, or 4]",
    ),
)

_SEARCH = ("--minimise", "--max-overhead", "--max-slowdown", "--method")
# Options that exclude each other, and why.
_CONTRADICTIONS = (
    ("--plain", ("--phases", "--phase-layers", "--tile", "--pareto", *_SEARCH), "plain plans run layers whole"),
    ("--tile", ("--phases", "--pareto", *_SEARCH), "a tiling by hand leaves nothing to choose"),
    ("--phases", ("--pareto", *_SEARCH), "the search itself chooses which layers run row by row"),
    ("--phase-layers", ("--pareto", *_SEARCH), "the search itself chooses which layers run row by row"),
    ("--pareto", ("--minimise", "--ram"), "--pareto shows every trade of RAM for work; choose a point of it"),
    ("--pareto", ("--lanes",), "its points are for one core; plan the one that you choose again with --lanes"),
    ("--pareto", ("--max-slowdown",), "its points differ in MACs; limit these with --max-overhead"),
    ("--method paper", ("--max-overhead", "--max-slowdown", "--pareto"), "the paper's method knows no such limit"),
    (
        "--plan",
        ("--plain", "--alignment", "--pull-input", "--phases", "--phase-layers", "--tile", "--lanes", *_SEARCH),
        "the given plan is used as it is",
    ),
)


@dataclass(frozen=True)
class PlanOptions:
    """The planning options as given on the command line."""

    ram: int | None
    minimise: str | None
    max_overhead: float | None
    max_slowdown: float | None
    method: str | None
    tiles: tuple[TileRequest, ...]
    phases: bool
    phase_layers: tuple[str, ...]
    pull_rows: bool
    plain: bool
    alignment: int | None
    lanes: int

    @property
    def given(self) -> Mapping[str, bool]:
        """The options by name, and whether each was given."""
        given = {f"--{field.name.replace('_', '-')}": getattr(self, field.name) for field in fields(self)}
        given = {name: value is not None and value is not False and value != () for name, value in given.items()}
        given["--tile"] = given.pop("--tiles")
        given["--pull-input"] = given.pop("--pull-rows")
        given["--lanes"] = self.lanes > 1
        return {**given, "--method paper": self.method == "paper"}

    def check(self, *, pareto: bool = False, plan: bool = False) -> None:
        """Raises a usage error for options that contradict each other."""
        given = {**self.given, "--pareto": pareto, "--plan": plan}
        for one, others, why in _CONTRADICTIONS:
            for other in others:
                if given[one] and given[other]:
                    raise click.UsageError(f"{one} and {other} contradict each other: {why}.")

    def request(self, network: Network) -> PlanRequest:
        """The request for a plan of this network."""
        from ..fusion.by_hand import layer_range, schedule_of
        from ..fusion.request import Method, PlanRequest
        from ..program import FusionSchedule

        schedules = tuple(schedule_of(network, tile) for tile in self.tiles)
        named = [layer_range(network, text) for text in self.phase_layers]
        streamed = tuple(FusionSchedule(names, streamed=True) for names in named)
        together = tuple(dict.fromkeys(name for names in named for name in names))
        return PlanRequest(
            ram=self.ram,
            plain=self.plain,
            alignment=self.alignment,
            pull_rows=self.pull_rows,
            phases=False if schedules else together or self.phases,
            schedules=(*schedules, *streamed) if schedules else None,
            minimise_ram=self.minimise is not None,
            max_overhead=self.max_overhead,
            max_slowdown=self.max_slowdown,
            method=Method(self.method) if self.method else None,
            lanes=self.lanes,
        )


def planning_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the planning options; the command receives them as one argument, `asked`."""

    @wraps(command)
    def collected(**given: Any) -> Any:
        asked = PlanOptions(**{field.name: given.pop(field.name) for field in fields(PlanOptions)})
        return command(asked=asked, **given)

    decorated: Callable[..., Any] = collected
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
