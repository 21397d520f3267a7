"""Tables and trees of a driver's design: registers, functions before and after, accesses that could not be merged."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.tree import Tree

from .. import text
from ..hal.analysis.functions import Function
from ..hal.design import Act, Design, acts, total, totals
from ..hal.export.table import TableBlock, TableField, TableRegister, tables
from ..hal.layout.front import FrontPoint
from ..hal.verify import Counts, TwinComparison, Verification
from .common import shown, table

MOST = 12  # fields listed for a register


def registers_table(design: Design) -> Table:
    """The register map; an array takes one line."""
    made = table("registers", "devices", ">offset", ">bits", "fields")
    for kind in tables(design):
        names = [device.name for device in design.analysis.description.devices if device.group == kind.group]
        told = shown(", ".join(names))
        for entry in kind.entries:
            for register in entry.registers if isinstance(entry, TableBlock) else (entry,):
                start = entry.offset if isinstance(entry, TableBlock) else 0
                offset = f"0x{start + register.offset:X}{_times(entry)}"
                made.add_row(told, offset, str(register.width), shown(_fields(register, entry.count > 1)))
                told = ""  # only the first row names the devices
        made.add_section()
    return made


def _times(entry: TableRegister | TableBlock) -> str:
    return f" + {entry.stride} i, i < {entry.count}" if entry.count > 1 else ""


def _fields(register: TableRegister, repeated: bool) -> str:
    """The bit ranges and the fields in them; for an array, those of element i."""
    told = [f"[{_bits(at.bit, at.size)}] {at.path}{_part(at)}" for at in register.fields[:MOST]]
    if repeated and all("[0]" in at.path for at in register.fields):
        told = [_indexed(text) for text in told]
    more = len(register.fields) - MOST
    all_told = ", ".join(told) + (f" and {more} more" if more > 0 else "")
    return f"view: {all_told}, written alone" if register.is_view else all_told


def _indexed(text: str) -> str:
    """The path with its first index left open; brackets before it hold bit numbers."""
    bits, path = text.split(" ", 1)
    return f"{bits} {path.replace('[0]', '[i]', 1)}"


def _part(at: TableField) -> str:
    """The bits of a field that lie in this register, for fields that span several registers."""
    return f" {_bits(at.low, at.size)}" if at.size < at.field.bits else ""


def _bits(first: int, size: int) -> str:
    return f"{first + size - 1}:{first}" if size > 1 else str(first)


def functions_table(design: Design, before: Design) -> Table:
    """Accesses per function: with one register for each field, and with this layout."""
    made = table("bus accesses in the code", "function", ">before", ">after", ">merged", ">read-modify-writes")
    was = totals(before)
    for function in design.analysis.functions:
        now = acts(design, function.name)
        merged = sum(len(act.numbers) > 1 for act in now)
        updates = sum(act.is_update for act in now)
        figures = (was[function.name], total(now), merged, updates)
        made.add_row(shown(function.name), *(text.count(figure) for figure in figures))
    return made


def summary(design: Design, before: Design) -> str:
    """The design in one line."""
    description = design.analysis.description
    was, now = sum(totals(before).values()), sum(totals(design).values())
    layout = design.layout
    how = "least by estimate" if layout.made_by == "optimal" else f"by method {layout.made_by}"
    proof = f"{how}, which is proven" if layout.optimal else how
    sizes = layout.map_bytes(description), before.layout.map_bytes(description)
    saved = f"{was} accesses in the code become {now}"
    return f"{saved}; register map {sizes[0]:,} B (one register for each field: {sizes[1]:,} B); layout {proof}"


def front_table(front: Sequence[FrontPoint]) -> Table:
    made = table("size of the map against code and accesses (estimated)", ">map, B", ">code, B", ">accesses")
    for point in front:
        made.add_row(text.count(point.map_bytes), text.count(point.code), text.count(point.accesses))
    return made


def verification_table(verification: Verification) -> Table:
    """What ran on the prototype, and the cost with either layout."""
    made = table(
        f"verified on {shown(verification.target)}, {shown(verification.compiler)}",
        "function",
        ">calls",
        ">accesses",
        ">instructions",
        ">code, B",
        "result",
    )
    different = {difference.function for difference in verification.differences}
    for checked in verification.functions:
        was, now = checked.naive, checked.optimised
        result = "[red]differs[/]" if checked.function in different else "[green]same[/]"
        if not checked.calls and not checked.unfinished:
            result = "[red]not compared[/]"
        if checked.left_out:
            told = checked.left_out if not checked.calls else checked.left_out.partition(":")[0]
            result = f"{result}; {shown(told)}" if checked.calls else shown(told)
        if checked.unreached and checked.calls:
            result += f"; never reached: {shown(', '.join(checked.unreached))}"
        made.add_row(
            shown(checked.function),
            text.count(checked.calls),
            f"{was.accesses:,} → {now.accesses:,}",
            f"{was.instructions:,} → {now.instructions:,}",
            f"{was.code_bytes:,} → {now.code_bytes:,}",
            result,
        )
    return made


def twin_table(comparison: TwinComparison) -> Table:
    """The user's own driver and the generated one, called with the same arguments."""
    title = f"conventional → generated on {shown(comparison.target)}, {shown(comparison.compiler)}"
    made = table(title, "function", ">calls", ">accesses", ">instructions", ">code, B", "results")
    for one in comparison.functions:
        results = shown(one.left_out) or (f"{one.other_results} differ" if one.other_results else "same")
        made.add_row(shown(one.function), text.count(one.calls), *_pairs_of(one.twin, one.ours), results)
    made.add_section()
    sizes = f"map {comparison.twin_map_bytes:,} → {comparison.map_bytes:,} B"
    made.add_row("all", "", *_pairs_of(comparison.twin, comparison.ours), sizes)
    return made


def _pairs_of(was: Counts, now: Counts) -> list[str]:
    pairs = (was.accesses, now.accesses), (was.instructions, now.instructions), (was.code_bytes, now.code_bytes)
    return [f"{a:,} → {b:,}" for a, b in pairs]


def explanation(design: Design, function: Function) -> Tree:
    """Explains one function: its regions and accesses, the conflicts, and which accesses were merged."""
    tree = Tree(f"[bold]{shown(function.name)}[/]  [dim]{shown(function.place)}[/]")
    regions, merging = design.analysis.regions[function.name], design.merging[function.name]
    names = {a.number: f"{a.number} {a.kind.value} {a.name}" for a in function.accesses}
    places = {a.number: f"line {a.place.line}" for a in function.accesses}
    inside = tree.add("access regions") if regions.regions else tree.add("no accesses")
    for n, region in enumerate(regions.regions):
        branch = inside.add(f"region {n}")
        for number in region:
            branch.add(f"{shown(names[number])}  [dim]{places[number]}[/]")
    if regions.conflicts is None:
        tree.add(f"conflicts: {regions.unlisted}")
    else:
        _pairs(tree, "conflicts", [(c.first, c.second, c.reason) for c in regions.conflicts], names)
    done = tree.add("bus accesses")
    for act in acts(design, function.name):
        done.add(shown(_act_text(act)))
    _pairs(tree, "not merged", [(k.first, k.second, k.reason) for k in merging.kept], names)
    return tree


def _pairs(tree: Tree, title: str, pairs: Sequence[tuple[int, int, str]], names: dict[int, str]) -> None:
    """Pairs with their reasons; pairs with the same second access and reason share a line."""
    together: dict[tuple[int, str], list[int]] = {}
    for first, second, reason in pairs:
        together.setdefault((second, reason), []).append(first)
    branch = tree.add(title) if pairs else tree
    for (second, reason), firsts in together.items():
        told = names[firsts[0]] if len(firsts) == 1 else ", ".join(map(str, firsts))
        branch.add(f"{shown(told)} [dim]and[/] {shown(names[second])}: {shown(reason)}")


def _act_text(act: Act) -> str:
    numbers = ", ".join(map(str, act.numbers))
    merged = f"{numbers} merged" if len(act.numbers) > 1 else numbers
    how = " (read-modify-write)" if act.is_update else ""
    return f"{act.kind.value} {act.space}: {', '.join(act.slots)}{how}  <- {merged}"
