"""Faults planted into the analysis and the rewriter: verification finds what each of them does to a driver."""

from __future__ import annotations

import pytest

from tests.hal.mutants import mutants_of_code, mutants_of_registers
from tests.hal.test_barriers import APART, HEAD, ONE

pytest.importorskip("unicorn")
# What no run on one core shows: order against memory and assembly; and where a macro is defined again, values are kept
# in variables with or without the barrier.
_UNSEEN = {"recursion", "atomic builtin", "assembly", "fences", "volatile local", "volatile local with a value"}
_UNSEEN |= {"macro defined again"}
DRIVERS = {name: HEAD + text for name, text in {**APART, **ONE}.items() if name not in _UNSEEN}
PORT = """
#include "edgewright_hal.h"
bfGroup Pad { bit w1c hit; uint2 trigger; };
bfGroup Port {
    uint12 divider; bit parity, enable; uint3 limit; bit hw go; uint8 hw count; bit w1c done, late;
    bit ro busy, full; uint8 ro level; uint4 mode[8]; bit shared_with_isr mask; bit unmask; uint40 split wide;
    uint8 fifo data; uint5 pin(0x100, 3) left; uint6 pin(0x100, 8) middle; bit pin(0x100, 14) right;
    bfGroup Pad pads[32]; uint32 gathers(pads, hit) hits;
};
make_device(Port, port, 0x40000000);
"""
INIT = "void init(int n) { port->divider = n; port->parity = 1; port->enable = 1; port->limit = n; }\n"
REGISTERS = {
    "one setting of several": INIT + "void f(int n) { port->limit = n; }",
    "two settings of several": INIT + "void f(int n) { port->divider = n; port->parity = n; }",
    "read of a setting": INIT + "int f(void) { return port->limit + port->parity; }",
    "pinned side by side": "void f(int n) { port->left = n; }\nvoid g(int n) { port->middle = n; }\n"
    "int h(void) { return port->left + port->right; }",
    "update": INIT + "int f(int n) { port->limit += n; port->parity ^= 1; return port->limit + port->parity; }",
    "elements": "void f(int n) { port->mode[n & 7] = n; }\nint g(int n) { return port->mode[n & 7]; }",
    "flags": "int f(int n) { int r = port->done; port->done = n; port->late = n >> 2; return r; }",
    "status": "int f(void) { snapshot if (port->busy && !port->full) return port->level; return 0; }",
    "status in a loop": "int f(void) { snapshot while (port->busy != port->full) { } return port->level; }",
    "a snapshot around a write": "int f(int n) { int r; snapshot { r = port->count; port->count = n; "
    "r += port->count; } return r; }",
    "trigger": "void f(int n) { assign(port, divider = n, limit = 3, go = 1); }\nint g(void) { return port->go; }",
    "count of hardware": INIT + "int f(int n) { int r = port->count; port->count = n; return r; }",
    "shared with an interrupt": "void f(int n) { port->unmask = n; }\n"
    "void g(int n) { port->unmask = n >> 2; port->mask = n; }",
    "wider than the bus": "void f(uint64_t n) { port->wide = n; }\nuint64_t g(void) { return port->wide; }",
    "queue": "void f(int n) { port->data = n; }\nint g(void) { return port->data; }",
    "bits of a word": "void f(int n) { port->pads[n & 31].hit = 1; port->pads[n & 31].trigger = n; }\n"
    "uint32_t g(void) { return port->hits; }",
    "word of bits": "void f(uint32_t n) { port->hits = n; }\nint g(int n) { return port->pads[n & 31].hit; }",
}


def test_a_fault_that_changes_nothing_is_none(tmp_path):
    assert not list(mutants_of_code({"plain": HEAD + "int f(void) { return 1; }\n"}, tmp_path, 2))


@pytest.mark.slow
def test_all_planted_faults_are_found(tmp_path):
    found = [*mutants_of_code(DRIVERS, tmp_path, 2)]
    found += mutants_of_registers({name: PORT + text for name, text in REGISTERS.items()}, tmp_path, 4)
    assert len(found) >= 150
    assert [(one.fault, one.driver) for one in found if not one.story] == []
