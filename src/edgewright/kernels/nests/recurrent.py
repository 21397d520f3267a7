"""A step of an LSTM layer from the sums of its gates, element by element: real numbers, or 16 bits as TFLite's."""

from __future__ import annotations

from ...network import DType
from ...network.kernels.recurrent import cell_bits, cell_limit, hidden_factor
from ...network.operators import LstmPart, LstmStep
from ..call import CCall
from ..kernel import Kernel, Offer, where
from ..printing.constants import number
from ..printing.nest import loops
from ..printing.source import CWriter, plus
from ..site import Site
from .tflite import applies, placed, scaled


def suits(site: Site) -> bool:
    return applies(site) or all(tensor.dtype is DType.FLOAT32 for tensor in site.tensors)


def write(call: CCall, _: Offer, c: CWriter) -> None:
    op, (gates, cell) = call.op_as(LstmStep), call.inputs
    size = cell.tensor.shape[-1]
    with c.block():
        c.line(f"const {gates.ctype} *const pg = {call.place(0).pointer};")
        c.line(f"const {cell.ctype} *const pc = {call.place(1).pointer};")
        c.line(f"{call.output.ctype} *const py = {call.output.pointer};")
        with loops(c, call.region, backward=call.is_backward) as at:
            sums = [f"pg[{gates.offset((*at[:-1], plus(at[-1], which * size)))}]" for which in range(4)]
            formula = _stored if applies(call) else _real
            c.line(f"py[{call.output.offset(at)}] = {formula(call, op, sums, f'pc[{cell.offset(at)}]')};")


def _real(call: CCall, op: LstmStep, gates: list[str], cell: str) -> str:
    call.use("math_functions")
    given, kept, new, shown = gates
    if op.part is LstmPart.HIDDEN:
        return f"ew_sigmoid({shown}) * tanhf({cell})"
    value = f"ew_sigmoid({kept}) * {cell} + ew_sigmoid({given}) * tanhf({new})"
    if op.clip is None:
        return value
    call.use("real")
    return f"ew_clamp_real({value}, {number(-op.clip)}, {number(op.clip)})"


def _stored(call: CCall, op: LstmStep, gates: list[str], cell: str) -> str:
    call.use("tflite_lstm")
    bits, (given, kept, new, shown) = cell_bits(call.inputs[1].tensor), gates
    if op.part is LstmPart.HIDDEN:
        return placed(
            call, scaled(call, f"ew_sigmoid_16({shown}) * ew_tanh_16({cell}, {bits})", hidden_factor(call.result))
        )
    most = cell_limit(op, call.result)
    old = f"ew_divide_by_power(ew_sigmoid_16({kept}) * {cell}, 15)"
    added = f"ew_divide_by_power(ew_sigmoid_16({given}) * ew_tanh_16({new}, 3), {15 + bits})"
    return f"(int16_t)ew_between({-most - (most == 0x7FFF)}, {old} + {added}, {most})"


LSTM_STEP = Kernel("lstm_step", (LstmStep,), where(suits), write)
