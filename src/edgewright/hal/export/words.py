"""What software has to know of a field, in words: the text of descriptions in exported files."""

from __future__ import annotations

from collections.abc import Iterator

from .table import TableField, TableRegister

MOST_NAMES = 8


def about_field(at: TableField) -> str:
    """What it does beyond keeping what software writes, as one sentence; empty for a plain field."""
    return "; ".join(_facts(at))


def about_register(register: TableRegister) -> str:
    """The fields in it, as the driver's source names them."""
    paths = [at.path for at in register.fields]
    names = ", ".join(paths) if len(paths) <= MOST_NAMES else f"{paths[0]} to {paths[-1]}"
    return names if register.count == 1 else f"{names} and so on"


def _facts(at: TableField) -> Iterator[str]:
    field = at.field
    if field.fifo:
        yield "FIFO: reading takes the next value, writing appends one"
    if field.clear_on_read:
        yield "reading clears it"
    if others := [str(target) for target in field.rse if target.member != field.name]:
        yield f"reading touches {', '.join(others)}"
    if field.wse:
        yield f"writing touches {', '.join(map(str, field.wse))}"
    if field.gathers:
        array, *names = field.gathers
        yield f"bit n is {'.'.join([f'{array}[n]', *names])}"
    if field.w1c:
        yield "writing 1 clears"
    if field.w1s:
        yield "writing 1 sets"
    if at.nature.by_hardware:
        yield "the peripheral changes it too" if at.nature.writable else "the peripheral sets it"
    if field.shared_with_isr:
        yield "an interrupt routine accesses it too"
    if at.size != field.bits:
        yield f"bits {at.low + at.size - 1}:{at.low} of {field.name}"
