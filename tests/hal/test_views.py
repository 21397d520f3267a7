"""Views: further addresses of a register, at which a write reaches some of its fields alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgewright.cli import main
from edgewright.errors import EdgewrightError, InputError
from edgewright.hal import examples
from edgewright.hal.design import acts, total
from edgewright.hal.design_flow import analyse, design, naive, real_joints
from edgewright.hal.export import exports
from edgewright.hal.export.peakrdl import compiled
from edgewright.hal.export.systemrdl import system_rdl
from edgewright.hal.layout.cost import LayoutGoal
from edgewright.hal.layout.front import layout_front
from edgewright.hal.layout.judge import faults
from edgewright.hal.layout.layout import WriteView, elaborate
from edgewright.hal.layout.optimal import lay_out_optimal
from edgewright.hal.layout_choice import chosen_design, total_accesses
from edgewright.hal.lock.lock_file import lock_text, read_lock
from edgewright.hal.verify import verify
from tests.helpers.tools import needs_board

DRIVER = """
#include "edgewright_hal.h"

bfGroup Channel {
    uint10 level;
    bit enable;
    bit hw go;
};

bfGroup Pump {
    bit power, fast;
    uint12 rate;
    bit hw running;
    bfGroup Channel channels[4];
};

make_device(Pump, pump, 0x40000000);

void pump_start(uint16_t rate, uint8_t fast)
{
    assign(pump, power = 1, fast = fast & 1u, rate = rate & 0xfffu, running = 1);
}

void pump_set_rate(uint16_t rate)
{
    pump->rate = rate & 0xfffu;
}

void pump_stop(void)
{
    pump->running = 0;
}

int pump_is_running(void)
{
    return pump->running;
}

void pump_open(uint32_t number, uint16_t level)
{
    bfGroup Channel *channel = &pump->channels[number & 3u];
    assign(channel, level = level & 0x3ffu, enable = 1, go = 1);
}

void pump_close(uint32_t number)
{
    pump->channels[number & 3u].enable = 0;
}
"""


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    path = tmp_path_factory.mktemp("views") / "pump.c"
    path.write_text(DRIVER)
    return analyse([path])


@pytest.fixture(scope="module")
def made(analysis):
    return design(analysis, lay_out_optimal(analysis.description, analysis.spaces, analysis.joints, LayoutGoal()))


def test_every_function_needs_one_access_though_hardware_changes_a_neighbour(made):
    assert {f.name: total(acts(made, f.name)) for f in made.analysis.functions} == {
        "pump_start": 1,
        "pump_set_rate": 1,
        "pump_stop": 1,
        "pump_is_running": 1,
        "pump_open": 1,
        "pump_close": 1,
    }
    assert {view.slots for view in made.layout.spaces["Pump"].views} == {("rate",), ("running",)}
    assert {view.slots for view in made.layout.spaces["Channel"].views} == {("enable",)}


def test_the_map_without_views_is_what_it_was(analysis):
    plain = chosen_design(analysis, goal=LayoutGoal(views=False))
    small = chosen_design(analysis, goal=LayoutGoal(minimise="map"))
    assert not any(space.views for one in (plain, small) for space in one.layout.spaces.values())
    assert sum(total(acts(plain, f.name)) for f in analysis.functions) > 6


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (lambda views: views[1:], "read-modify-write"),
        (lambda views: (replace(views[0], offset=0), *views[1:]), "overlap at byte"),
        (lambda views: (replace(views[0], offset=views[0].offset + 1), *views[1:]), "not aligned"),
        (lambda views: (*views, WriteView(64, views[0].slots)), "shows what another does"),
        (lambda views: (*views, WriteView(64, ("power", "fast", "rate", "running"))), "does not show part"),
    ],
)
def test_the_judge_sees_views_that_are_wrong(made, broken, fault):
    analysis, placed = made.analysis, made.layout.spaces["Pump"]
    other = replace(placed, views=broken(placed.views), size=128)
    layout = replace(made.layout, spaces={**made.layout.spaces, "Pump": other})
    assert faults(analysis.description, analysis.spaces, made.layout, real_joints(made)) == []
    assert any(fault in told for told in faults(analysis.description, analysis.spaces, layout, real_joints(made)))


def test_verification_runs_through_views_and_sees_one_that_reaches_too_much(analysis, made):
    needs_board("rv32imc")
    assert verify(analysis, made, calls=6, measure=False).is_equal
    placed = made.layout.spaces["Channel"]
    wider = replace(placed, views=tuple(replace(view, slots=(*view.slots, "level")) for view in placed.views))

    class Wrong(type(placed)):  # type: ignore[misc]
        """Writes go where the view was, and hardware has it reach another field as well."""

        def view_of(self, register, slots):
            found = super().view_of(register, (*slots, "level") if "enable" in slots else slots)
            return found or super().view_of(register, slots)

    wrong = Wrong(wider.space, wider.registers, wider.areas, wider.size, wider.views)
    layout = replace(made.layout, spaces={**made.layout.spaces, "Channel": wrong})
    assert not verify(analysis, replace(made, layout=layout), calls=6, measure=False).is_equal


def places(made):
    found = elaborate(made.analysis.description, made.analysis.spaces, made.layout)
    return {(at.offset, at.is_view, frozenset((field.name, field.bit) for field in at.fields)) for at in found}


def test_a_locked_map_gets_a_view_for_a_write_that_is_new(analysis, made, tmp_path):
    (tmp_path / "pump.lock.json").write_text(lock_text(made))
    (tmp_path / "pump.c").write_text(DRIVER + "void pump_power(void) { pump->power = 1; }\n")
    more = chosen_design(analyse([tmp_path / "pump.c"]), lock=read_lock(tmp_path / "pump.lock.json"))
    (new,) = places(more) - places(made)
    size = made.layout.map_bytes(analysis.description)
    assert new[:2] == (size, True) and {name for name, _ in new[2]} == {"power"}
    assert more.layout.map_bytes(analysis.description) == size + 4


def test_nobody_gets_views_that_are_not_wanted(analysis, made, tmp_path):
    """Neither a locked map, which is then refused, nor a point of the front."""
    (tmp_path / "pump.lock.json").write_text(lock_text(made))
    (tmp_path / "pump.c").write_text(DRIVER + "void pump_power(void) { pump->power = 1; }\n")
    with pytest.raises(EdgewrightError, match=r"pump\.lock\.json"):
        chosen_design(
            analyse([tmp_path / "pump.c"]), goal=LayoutGoal(views=False), lock=read_lock(tmp_path / "pump.lock.json")
        )
    known = analysis.description, analysis.spaces, analysis.joints
    fronts = [layout_front(*known, views=views) for views in (True, False)]
    assert [any(s.views for p in front for s in p.layout.spaces.values()) for front in fronts] == [True, False]


def test_a_lock_keeps_views(analysis, made, tmp_path):
    path = tmp_path / "pump.lock.json"
    path.write_text(lock_text(made))
    again = chosen_design(analysis, lock=read_lock(path))
    assert places(again) == places(made)
    with pytest.raises(InputError, match="Use --relock to lay out without them"):
        exports(again, "pump", ["regblock"])


def test_system_rdl_has_views_as_aliases(made, tmp_path):
    systemrdl = pytest.importorskip("systemrdl")
    top = compiled(system_rdl(made, "pump"), tmp_path / "pump.rdl")
    registers = [node for node in top.descendants() if isinstance(node, systemrdl.RegNode)]
    aliases = {
        (node.alias_primary.inst_name, tuple(f.inst_name for f in node.fields())) for node in registers if node.is_alias
    }
    assert {names for _, names in aliases} == {("rate",), ("running",), ("enable",)}
    assert len([node for node in registers if not node.is_alias]) == 2


def test_the_command_shows_views_and_does_without_them(tmp_path):
    source = tmp_path / "pump.c"
    source.write_text(DRIVER)
    for option, has_views in (("--views", True), ("--no-views", False)):
        told = json.loads(CliRunner().invoke(main, ["hal", str(source), "--json", option]).output)
        assert any("view" in register for register in told["registers"]) == has_views
    assert "written alone" in CliRunner().invoke(main, ["hal", str(source)]).output


@pytest.mark.parametrize("target", ["rv32imc", "cortex-m0plus", "cortex-m4"])
def test_limits_on_views_cost_no_accesses(target):
    """The default has no more than one register for each field, whatever maps it may not have."""
    analysis = analyse([Path(examples.__file__).with_name("gpio.c")])
    made = chosen_design(analysis, goal=LayoutGoal(target=target))
    assert total_accesses(made) <= total_accesses(naive(analysis))


def test_memory_has_no_views(tmp_path):
    """What a controller finds in memory has one address; a lock from before it was said to be memory is no excuse."""
    source, lock = tmp_path / "driver.c", tmp_path / "driver.lock.json"
    source.write_text(DRIVER)
    before = chosen_design(analyse([source]), goal=LayoutGoal(minimise="accesses"))
    assert before.layout.spaces["Pump"].views
    lock.write_text(lock_text(before))
    source.write_text(DRIVER + "in_memory(pump);\n")
    analysis = analyse([source])
    for minimise in ("balanced", "accesses", "code", "map"):
        made = chosen_design(analysis, goal=LayoutGoal(minimise=minimise))
        assert not any(space.views for space in made.layout.spaces.values())
    known = analysis.description, analysis.spaces
    assert any("views of memory" in fault for fault in faults(*known, before.layout, analysis.joints))
    with pytest.raises(InputError, match="running, which the hardware changes"):
        chosen_design(analysis, lock=read_lock(lock))
