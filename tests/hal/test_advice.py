"""Advice: where `snapshot` would save reads, and that it does when the driver says it."""

from __future__ import annotations

import pytest

from edgewright.hal.advice import advice_for
from edgewright.hal.design_flow import analyse
from edgewright.hal.layout_choice import chosen_design, total_accesses

GROUPS = """
#include "edgewright_hal.h"

bfGroup Uart {
    bit ro received, sent, busy, fault;
    bit enable, loopback;
    bit w1c overrun;
    uint32 ro high;
    uint8 fifo data;
};

make_device(Uart, uart, 0x40004400);
"""
SERVE = """
uint32_t serve(uint32_t next)
{
    uint32_t taken = 0;
    %s {
        if (uart->received)
            taken = uart->data;
        if (uart->sent)
            uart->data = (uint8_t)next;
        else if (uart->overrun)
            uart->overrun = 1;
    }
    return taken;
}
"""
IDLE = """
int idle(uint32_t turns)
{
    %s while (uart->busy && !uart->fault) {
        if (turns-- == 0)
            return -1;
    }
    return 0;
}
"""
SILENT = {
    "a change is waited for": "int f(void) { if (uart->busy) return 1; return uart->busy; }",
    "plain fields need no snapshot": "int f(void) { if (uart->enable) return 1; return uart->loopback; }",
    "too much for a register": "uint32_t f(void) { if (uart->busy) return 1; return uart->high; }",
    "it may act": "uint32_t f(void) { if (uart->received) return uart->data; return 0; }",
}


def made(tmp_path, text):
    path = tmp_path / "uart.c"
    path.write_text(GROUPS + text)
    return chosen_design(analyse([path]))


@pytest.mark.parametrize(
    ("text", "fields", "saved"), [(SERVE, ("received", "sent", "overrun"), 2), (IDLE, ("busy", "fault"), 1)]
)
def test_a_snapshot_saves_what_is_said(tmp_path, text, fields, saved):
    without, with_word = made(tmp_path, text % ""), made(tmp_path, text % "snapshot")
    (advice,) = advice_for(without)
    assert (advice.fields, advice.saved) == (fields, saved)
    assert "Then 'snapshot' before the statement saves" in str(advice)
    assert advice_for(with_word) == ()
    assert total_accesses(without) - total_accesses(with_word) == saved


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_nothing_is_said_where_nothing_would_be_saved(tmp_path, text):
    assert advice_for(made(tmp_path, text)) == ()
