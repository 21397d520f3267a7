"""A design as plain data: what `--json` prints, and what the JSON file beside the driver holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..analysis.accesses import Kind
from ..design import Act, Design, acts, total
from ..language.description import Refusal
from ..layout.layout import elaborate


def record(design: Design, before: Design, files: Sequence[str] = ()) -> dict[str, Any]:
    """The whole design; `before` is the naive one, whose accesses it is compared with."""
    analysis, layout = design.analysis, design.layout
    return {
        "registers": registers(design),
        "devices": [
            {
                "name": d.name,
                "group": d.group,
                "address": None if d.is_mapped else d.address,
                "bytes": layout.spaces[d.group].size,
            }
            for d in analysis.description.devices
        ],
        "map_bytes": layout.map_bytes(analysis.description),
        "map_bytes_before": before.layout.map_bytes(analysis.description),
        "functions": {f.name: function_record(design, before, f.name) for f in analysis.functions},
        "refused": [],
        "questions": list(analysis.questions),
        "layout": {"made_by": layout.made_by, "optimal": layout.optimal, "cost": layout.cost, "bound": layout.bound},
        "files": list(files),
    }


def refused_record(refusals: Sequence[Refusal]) -> dict[str, Any]:
    """The same object for a driver that was not taken."""
    told = [
        {"file": r.place.file, "line": r.place.line, "column": r.place.column, "reason": r.what, "hint": r.hint}
        for r in refusals
    ]
    return {"registers": [], "map_bytes": 0, "functions": {}, "refused": told, "files": []}


def registers(design: Design) -> list[dict[str, Any]]:
    """Every register of every device, arrays written out."""
    analysis = design.analysis
    return [
        {
            "device": at.device,
            "offset": at.offset,
            "width": at.width,
            **({"view": True} if at.is_view else {}),
            **({"protection": at.fields[0].field.protection.value} if at.fields[0].field.protection else {}),
            "fields": [
                {"name": f.name, "bit": f.bit, "size": f.size, **({"low": f.low} if f.low else {})} for f in at.fields
            ],
        }
        for at in elaborate(analysis.description, analysis.spaces, design.layout)
    ]


def function_record(design: Design, before: Design, name: str) -> dict[str, Any]:
    """What happened to one function; accesses are named by their numbers in `accesses`."""
    analysis = design.analysis
    function = next(f for f in analysis.functions if f.name == name)
    regions, merging = analysis.regions[name], design.merging[name]
    now = acts(design, name)
    return {
        "place": str(function.place),
        "accesses_before": total(acts(before, name)),
        "accesses_after": total(now),
        "accesses": [
            {"number": a.number, "kind": a.kind.value, "name": a.name, "place": str(a.place)} for a in function.accesses
        ],
        "regions": [list(region) for region in regions.regions],
        "conflicts": None if regions.conflicts is None else [[c.first, c.second, c.reason] for c in regions.conflicts],
        "merged": [merged_record(act) for act in now if len(act.numbers) > 1],
        "read_modify_writes": sum(act.is_update for act in now),
        "kept": [[k.first, k.second, k.reason] for k in merging.kept],
    }


def merged_record(act: Act) -> dict[str, Any]:
    kind = "READ" if act.kind is Kind.READ else "WRITE"
    name = "_".join(("HAL", kind, act.space, *act.slots))
    return {"function": name, "kind": act.kind.value, "slots": list(act.slots), "accesses": list(act.numbers)}
