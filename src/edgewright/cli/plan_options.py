"""The options that say what a plan should be like, the same for every verb that makes one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from ..errors import EdgewrightError
from .options import BYTE_SIZE, METHODS, TILE

if TYPE_CHECKING:  # what these stand on takes long to load, and `--help` needs none of it
    from ..fusion.by_hand import TileRequest
    from ..fusion.request import PlanRequest
    from ..network import Network


class ExtraShare(click.ParamType[float]):
    """How much more than without, as a share: 5%, 0.05 and 1.05x are the same.

    With `factors`, a bare number such as 1.5 is one.
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
            self.fail(f"'{value}' is no amount of extra work: write 5%, 0.05 or 1.05x", param, ctx)
        number, unit = float(match[1]), match[2]
        if unit is None and self.factors and "." in match[1] and 1 <= number < 10:
            unit = "x"  # 1.5 is hardly 1.5 %, and 12.5 may be
        if unit is None and number >= 1:
            self.fail(f"'{value}' can mean two things: write {value}% or {value}x", param, ctx)
        share = number / 100 if unit == "%" else number if unit is None else number - 1
        if share < 0:
            less = "below 1x" if unit in ("x", "×") else "negative"
            self.fail(f"'{value}' is {less}: there is no plan with less work than none extra", param, ctx)
        return round(share, 12)  # 1.05x is 5 %, to the last digit


class Alignment(click.ParamType[int]):
    """A power of two up to the largest that a plan takes."""

    name = "alignment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from ..memory.planner import checked_alignment

        try:
            return checked_alignment(int(value))
        except ValueError:
            self.fail(f"'{value}' is no whole number", param, ctx)
        except EdgewrightError as error:
            self.fail(str(error), param, ctx)


pull_option = click.option(
    "--pull-input",
    "--pull-rows",
    "pull_rows",
    is_flag=True,
    help="Images come row by row through a callback, and are never held whole.",
)
_OPTIONS = (
    click.option("--ram", type=BYTE_SIZE, help="RAM that there is, such as 64K. Overrules the board's."),
    click.option(
        "--minimise",
        type=click.Choice(["ram"]),
        help="Search for the least RAM, layers in parts: no extra MACs, about the time of whole layers, unless "
        "allowed.",
    ),
    click.option(
        "--max-overhead",
        type=ExtraShare(),
        metavar="5%|0.05|1.05x",
        help="Search, with at most so many more MACs: until it fits, or for the least RAM where nothing must fit.",
    ),
    click.option(
        "--max-slowdown",
        type=ExtraShare(factors=True),
        metavar="50%|0.5|1.5x",
        help="Search, with at most so many more instructions than whole layers take, extra MACs included, as estimated "
        "for the board or target.  [default for the least RAM: 10%, or what --max-overhead allows]",
    ),
    click.option(
        "--method",
        type=click.Choice(METHODS),
        help="Who searches: every way to run every group of layers at once, or tiles alone, buffer by buffer "
        "(S 4.3.3).  [default: joint]",
    ),
    click.option(
        "--tile",
        "tiles",
        type=TILE,
        multiple=True,
        metavar="FIRST..LAST:rows=4",
        help="These layers together, in so many parts: rows=, columns= (or both), channels=, or stripes= (columns, by "
        "rows inside; with rows= before it, in bands). May be given again.",
    ),
    click.option(
        "--lanes",
        type=click.IntRange(1, 64),
        default=1,
        show_default=True,
        help="Cores that share the work of a layer, where that pays.",
    ),
    click.option("--phases", is_flag=True, help="Layers run row by row where that saves memory (no extra MACs)."),
    click.option(
        "--phase-layers",
        multiple=True,
        metavar="NAME|FIRST..LAST",
        help="Just these layers run row by row. May be given again.",
    ),
    pull_option,
    click.option("--plain", is_flag=True, help="Best order and layout only: no buffers shared or overlapping."),
    click.option(
        "--alignment",
        type=Alignment(),
        metavar="1|2|4|...",
        help="Of every offset, a power of two; elements are always aligned.  [default: the board's, or 4]",
    ),
)

_SEARCH = ("--minimise", "--max-overhead", "--max-slowdown", "--method")
# Options that cannot be given together, and why.
_CONTRADICTIONS = (
    ("--plain", ("--phases", "--phase-layers", "--tile", "--pareto", *_SEARCH), "plain plans run layers whole"),
    ("--tile", ("--phases", "--pareto", *_SEARCH), "a tiling by hand leaves nothing to choose"),
    ("--phases", ("--pareto", *_SEARCH), "the search chooses itself which layers run row by row"),
    ("--phase-layers", ("--pareto", *_SEARCH), "the search chooses itself which layers run row by row"),
    ("--pareto", ("--minimise", "--ram"), "--pareto shows every trade of RAM for work; choose a point of it"),
    ("--pareto", ("--lanes",), "its points are for one core; plan the one that you choose again with --lanes"),
    ("--pareto", ("--max-slowdown",), "its points are told apart by MACs; limit these with --max-overhead"),
    ("--method paper", ("--max-overhead", "--max-slowdown", "--pareto"), "the paper's method knows no such limit"),
    (
        "--plan",
        ("--plain", "--alignment", "--pull-input", "--phases", "--phase-layers", "--tile", "--lanes", *_SEARCH),
        "a plan made before is carried out as it is",
    ),
)


@dataclass(frozen=True)
class PlanOptions:
    """The options as they were given."""

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
        found = {f"--{field.name.replace('_', '-')}": getattr(self, field.name) for field in fields(self)}
        found = {name: value is not None and value is not False and value != () for name, value in found.items()}
        found["--tile"] = found.pop("--tiles")
        found["--pull-input"] = found.pop("--pull-rows")
        found["--lanes"] = self.lanes > 1
        return {**found, "--method paper": self.method == "paper"}

    def check(self, *, pareto: bool = False, plan: bool = False) -> None:
        """A usage error where options contradict each other."""
        given = {**self.given, "--pareto": pareto, "--plan": plan}
        for one, others, why in _CONTRADICTIONS:
            for other in others:
                if given[one] and given[other]:
                    raise click.UsageError(f"{one} and {other} contradict each other: {why}.")

    def request(self, network: Network) -> PlanRequest:
        """What is asked of a plan of this network."""
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
    """Adds the options; the command gets them as one `asked`."""

    @wraps(command)
    def collected(**given: Any) -> Any:
        asked = PlanOptions(**{field.name: given.pop(field.name) for field in fields(PlanOptions)})
        return command(asked=asked, **given)

    found: Callable[..., Any] = collected
    for option in reversed(_OPTIONS):
        found = option(found)
    return found
