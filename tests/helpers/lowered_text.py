"""Closed plans as text: the lowered tree of each stage, and the kernel that was selected for each call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgewright.program import Plan
from edgewright.program.index import AffineExpr, Bounds, IndexExpr, TableExpr
from edgewright.program.lower import For, KernelCall, Node, OnDemand, lower


def lowered_text(plan: Plan) -> str:
    """All stages with their loops, calls, kernels and scratch."""
    lines: list[str] = []
    for index, stage in enumerate(plan.program.stages):
        lines.append(f"{index}: {stage.name} ({stage.sweep.value})")
        lines += _nodes(plan, index, lower(plan, stage), "    ")
    return "\n".join(lines) + "\n"


def _nodes(plan: Plan, stage: int, nodes: Sequence[Node], indent: str) -> Iterator[str]:
    for node in nodes:
        match node:
            case For(name, count, body, lanes):
                yield f"{indent}for {name} in 0..{count}{f' on {lanes} lanes' if lanes > 1 else ''}:"
                yield from _nodes(plan, stage, body, indent + "    ")
            case OnDemand(trace, bodies):
                for chain, body in zip(trace.chains, bodies, strict=True):
                    yield f"{indent}on demand, {chain.rows} rows at a time:"
                    yield from _nodes(plan, stage, body, indent + "    ")
            case KernelCall():
                yield from (indent + line for line in _call(plan, stage, node))


def _call(plan: Plan, stage: int, call: KernelCall) -> Iterator[str]:
    partial = f" of inputs {_bounds(call.partial)}" if call.partial else ""
    condition = ", if not empty" if call.may_be_empty else ""
    yield f"{call.kind.value} {call.layer} {_bounds(call.region)}{partial}{condition}"
    for tensor, axis, begin in call.origins:
        yield f"    {tensor} is kept from index {_index(begin)} of axis {axis} on"
    chosen = plan.selections[call.key(stage)]
    variant = ", ".join(f"{name} {number}" for name, number in chosen.offer.variant)
    home = f"in '{chosen.scratch}'" if chosen.scratch else "on the stack"
    scratch = f", {chosen.offer.scratch} B {home}" if chosen.offer.scratch else ""
    yield f"    by {chosen.kernel}{f' ({variant})' if variant else ''}{scratch}"


def _bounds(bounds: Bounds) -> str:
    return f"[{', '.join(f'{_index(low)}:{_index(high)}' for low, high in bounds)}]"


def _index(expr: IndexExpr) -> str:
    match expr:
        case AffineExpr(base, terms, within):
            parts = [f"{step} {name}" if step != 1 else name for name, step in terms]
            text = " + ".join([*([str(base)] if base or not parts else []), *parts])
            return text if within is None else f"({text} within {within[0]}..{within[1]})"
        case TableExpr(values, name):
            return f"{list(values)}[{name}]"
        case _:
            return str(expr)
