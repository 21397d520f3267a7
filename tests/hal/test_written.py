"""Generated code against the source as it was written: faults of the rewriter are found, and nothing is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgewright.cli.main import main
from edgewright.hal.design_flow import analyse
from edgewright.hal.generate import rewriter
from edgewright.hal.layout_choice import chosen_design
from edgewright.hal.verify import Verification, verify

pytest.importorskip("unicorn")

DRIVER = """
#include "edgewright_hal.h"
bfGroup Pad { bit dir; uint3 pull; };
bfGroup Lamp {
    bit on; uint4 mode; uint8 level; uint64 split stamp; bfGroup Pad pads[3];
    bit w1c seen[3]; uint3 gathers(seen) all;
};
make_device(Lamp, lamp, 0x40000000);
void wait(uint32_t n);
static uint8_t buffer[16];
uint32_t count(uint32_t x)
{
    uint32_t n;
    lamp->level = x & 7u;
    for (n = 0; lamp->level--;) n++;
    assign(lamp, on = 1, mode = x);
    return n;
}
uint64_t wide(uint64_t by) { lamp->stamp = by; return lamp->stamp + (uint32_t)(uintptr_t)buffer; }
bfGroup Pad *pad(uint32_t n) { return &lamp->pads[n % 3u]; }
void pull(bfGroup Pad *p, uint32_t n) { p->dir = 1; p->pull = n; wait(n); }
uint32_t take(uint32_t n) { uint32_t all = lamp->all; lamp->seen[n % 3u] = 1; return all; }
"""
TABLE = """
#include "edgewright_hal.h"
bfGroup Lamp { bit on; uint4 mode; };
make_device(Lamp, lamp, 0x40000000);
struct config { uint32_t mode; };
struct device { const struct config *config; };
struct api { void (*start)(const struct device *); };
static const struct config config = {3};
static void start(const struct device *dev) { lamp->on = 1; lamp->mode = dev->config->mode; }
static void unused(void) { lamp->on = 0; }
const struct device device = {&config};
const struct api api = {start};
"""
BY_VALUE = """
#include "edgewright_hal.h"
bfGroup Lamp { bit on; uint4 mode; };
make_device(Lamp, lamp, 0x40000000);
struct pair { uint32_t a, b; };
void on(void) { lamp->on = 1; }
void both(struct pair p) { lamp->on = p.a; lamp->mode = p.b; }
"""


def verified(folder: Path, text: str, calls: int = 12) -> Verification:
    (folder / "lamp.c").write_text(text)
    analysis = analyse([folder / "lamp.c"])
    return verify(analysis, chosen_design(analysis, "paper"), calls=calls, measure=False)


def test_the_source_as_written_does_the_same(tmp_path):
    """Steps in conditions, wide fields, status words, pointers to groups, addresses as numbers."""
    found = verified(tmp_path, DRIVER)
    assert [str(one) for one in found.differences] == [] and not found.uncompared
    assert all(check.calls for check in found.functions)


def test_a_fault_of_the_rewriter_is_found(tmp_path, monkeypatch):
    """The design with one register for each field has it too."""
    wrong = {"HAL_WRITE_Lamp_level": "1u", "HAL_WRITE_Pad_pull": "2u"}
    right = rewriter.Rewriter._value

    def value(self, accesses):
        name = f"HAL_WRITE_{accesses[-1].owner}_{accesses[-1].field}"
        return wrong.get(name) or right(self, accesses)

    monkeypatch.setattr(rewriter.Rewriter, "_value", value)
    differences = {one.function: one.what for one in verified(tmp_path, DRIVER, 4).differences}
    assert set(differences) == {"count", "pull"}
    assert "the source as written has a write of" in differences["pull"]


def test_static_functions_are_called_through_their_tables(tmp_path):
    found = verified(tmp_path, TABLE)
    (check,) = found.functions
    assert (check.function, bool(check.calls), check.unreached) == ("start", True, ())
    assert [(one.function, one.reason, one.is_dead) for one in found.uncompared] == [
        ("unused", "nothing calls it", True)
    ]
    assert found.is_equal and not found.unproven()


def test_a_function_that_cannot_be_compared_is_not_written_unless_it_is_excluded(tmp_path):
    (tmp_path / "lamp.c").write_text(BY_VALUE)
    asked = ["hal", str(tmp_path / "lamp.c"), "-o", str(tmp_path / "out")]
    refused = CliRunner().invoke(main, asked)
    assert refused.exit_code == 1 and "'both': not called: it has a parameter or result of type" in refused.output
    assert not (tmp_path / "out").exists()
    assert "needs a reason" in CliRunner().invoke(main, [*asked, "--exclude", "both"]).output
    made = CliRunner().invoke(main, [*asked, "--exclude", "both=seen on the board", "--json"])
    assert made.exit_code == 0 and json.loads(made.output)["verification"]["excluded"] == {"both": "seen on the board"}
    assert (tmp_path / "out" / "lamp.c").exists()
