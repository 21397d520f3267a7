"""The lock file: fields stay where they are, whatever the source adds, drops or indexes differently."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from edgewright.errors import InputError
from edgewright.hal.analysis.spaces import Area, Slot, Space
from edgewright.hal.language.description import EffectTarget
from edgewright.hal.layout.assembly import lay_out_naive
from edgewright.hal.layout.layout import Layout, Piece, Register, SpaceLayout, elaborate
from edgewright.hal.lock.lock_file import lock_text, read_lock
from edgewright.hal.lock.locked_layout import locked
from tests.hal.designs import DESCRIPTION, LAYOUT, SPACES, design, field, plain, with_field


@pytest.fixture
def lock(tmp_path):
    path = tmp_path / "uart.lock.json"
    path.write_text(lock_text(design()))
    return read_lock(path)


def again(lock, description=DESCRIPTION, spaces=SPACES):
    return locked(description, spaces, lock, lambda new: lay_out_naive(description, new))


def places(layout, description=DESCRIPTION, spaces=SPACES):
    return {
        (at.device, field.name, field.low): (at.offset, at.width, field.bit, field.size)
        for at in elaborate(description, spaces, layout)
        for field in at.fields
    }


def test_an_unchanged_driver_gets_the_very_same_layout(lock):
    found = again(lock)
    assert found.spaces == LAYOUT.spaces and found.made_by == "lock"


def test_a_new_field_comes_after_everything(lock):
    new = field("extra", 3)
    description = with_field(DESCRIPTION, "Uart", new)
    uart = SPACES["Uart"]
    slot = Slot("extra", (("extra", None),), "Uart", new)
    spaces = {**SPACES, "Uart": replace(uart, slots=(slot, *uart.slots))}
    found = places(again(lock, description, spaces), description, spaces)
    assert {key: place for key, place in found.items() if key[1] != "extra"} == places(LAYOUT)
    assert found["uart0", "extra", 0] == (128, 32, 0, 3)


def test_the_place_of_a_field_that_is_gone_stays_free(lock):
    uart = SPACES["Uart"]
    spaces = {**SPACES, "Uart": replace(uart, slots=tuple(s for s in uart.slots if s.name != "busy"))}
    found = again(lock, spaces=spaces)
    expected = {key: place for key, place in places(LAYOUT).items() if key[1] != "busy"}
    assert places(found, spaces=spaces) == expected
    assert found.spaces["Uart"].size == 128


def test_an_array_that_is_no_longer_indexed_stays_in_place(lock):
    """pads[i].dir was one slot of four elements; now there are four slots."""
    uart = SPACES["Uart"]
    slots = [slot for slot in uart.slots if not slot.name.startswith("pads_")]
    for old in (uart.slot("pads_dir"), uart.slot("pads_out")):
        for i in range(4):
            steps = (("pads", i), old.steps[1])
            slots.append(replace(old, name=f"pads_{i}_{old.field.name}", steps=steps, counts=()))
    spaces = {**SPACES, "Uart": replace(uart, slots=tuple(slots))}
    assert places(again(lock, spaces=spaces), spaces=spaces) == places(LAYOUT)


def test_a_group_that_gets_a_pointer_stays_in_place(lock):
    """Pad was flattened into Uart; now code reaches it through a pointer, so it is a space of its own."""
    uart = SPACES["Uart"]
    pad = Space("Pad", tuple(Slot(n, ((n, None),), "Pad", DESCRIPTION.field("Pad", n)) for n in ("dir", "out")))
    slots = tuple(slot for slot in uart.slots if not slot.name.startswith("pads_"))
    areas = (Area("pads", (("pads", -1),), "Pad", (4,)), *uart.areas)
    spaces = {"Channel": SPACES["Channel"], "Pad": pad, "Uart": replace(uart, slots=slots, areas=areas)}
    found = again(lock, spaces=spaces)
    assert places(found, spaces=spaces) == places(LAYOUT)
    assert found.spaces["Pad"].size == 8


def test_a_group_that_loses_its_pointer_stays_in_place(lock):
    uart = SPACES["Uart"]
    inner = [
        replace(slot, name=f"channels_{slot.name}", steps=(("channels", -1), *slot.steps), counts=(3,))
        for slot in SPACES["Channel"].slots
    ]
    spaces = {"Uart": replace(uart, slots=(*uart.slots, *inner), areas=())}
    assert places(again(lock, spaces=spaces), spaces=spaces) == places(LAYOUT)


def test_elements_that_were_scattered_cannot_be_indexed(lock):
    """limit[0..2] lie side by side in one register, five bits each: no array of registers."""
    uart = SPACES["Uart"]
    slots = tuple(slot for slot in uart.slots if not slot.name.startswith("limit_"))
    whole = replace(plain("limit"), steps=(("limit", -1),), counts=(3,))
    spaces = {**SPACES, "Uart": replace(uart, slots=(*slots, whole))}
    with pytest.raises(InputError, match=r"'limit' is indexed at run time now.*--relock"):
        again(lock, spaces=spaces)


def test_a_register_cannot_be_indexed_in_part(tmp_path):
    """Two arrays share registers; one of them is not indexed any more, the other is."""
    slots = [Slot(n, ((n, -1),), "Uart", DESCRIPTION.field("Uart", "mask"), (2,)) for n in ("a", "b")]
    shared = Register(0, 32, (Piece("a", 0, 1), Piece("b", 1, 1)), (2,), (4,))
    made = design(Layout({"Uart": SpaceLayout("Uart", (shared,), (), 8)}, "paper"))
    made = replace(made, analysis=replace(made.analysis, spaces={"Uart": Space("Uart", tuple(slots))}))
    path = tmp_path / "other.lock.json"
    path.write_text(lock_text(made))
    apart = [replace(slots[1], name=f"b_{i}", steps=(("b", i),), counts=()) for i in range(2)]
    spaces = {"Uart": Space("Uart", (slots[0], *apart))}
    with pytest.raises(InputError, match="share a register"):
        again(read_lock(path), spaces=spaces)


def test_growing_groups_that_lie_too_close_are_refused(lock):
    new = field("extra", 3)
    description = with_field(DESCRIPTION, "Channel", new)
    channel = SPACES["Channel"]
    slot = Slot("extra", (("extra", None),), "Channel", new)
    spaces = {**SPACES, "Channel": replace(channel, slots=(*channel.slots, slot))}
    with pytest.raises(InputError, match=r"'channels' lie 8 bytes apart, but Channel needs 12"):
        again(lock, description, spaces)


@pytest.mark.parametrize(
    ("group", "changed", "message"),
    [
        ("Uart", field("parity", 3), r"uart\.c:3:5: 'Uart::parity' has 3 bits, not 2"),
        ("Uart", field("mask", count=41), r"'Uart::mask' has 41 elements, not 40"),
        ("Uart", field("mask"), r"'Uart::mask' has no elements"),
    ],
)
def test_fields_that_changed_are_refused(lock, group, changed, message):
    with pytest.raises(InputError, match=message + r".*--relock"):
        again(lock, with_field(DESCRIPTION, group, changed))


def test_devices_that_moved_or_changed_are_refused(lock):
    first, second = DESCRIPTION.devices
    moved = replace(DESCRIPTION, devices=(replace(first, address=0x50000000), second))
    with pytest.raises(InputError, match="'uart0' is at 0x50000000, not 0x40000000"):
        again(lock, moved)
    other = replace(DESCRIPTION, devices=(first, replace(second, group="Channel")))
    with pytest.raises(InputError, match="'uart1' is a Channel, not a Uart"):
        again(lock, other)


def test_attributes_may_change(lock):
    """Whether the old layout is still lawful is the judge's business."""
    description = with_field(DESCRIPTION, "Uart", field("enable", wse=(EffectTarget("Uart", "busy"),)))
    assert again(lock, description).spaces == LAYOUT.spaces


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is damaged"),
        ("[]", "has format None, not 1"),
        ('{"format": 2}', "has format 2, not 1"),
        ('{"format": 1}', "'devices' is missing"),
        ("[" * 100_000, "is damaged"),
        (
            '{"format": 1, "devices": {}, "groups": {}, "layout": {"A": {"size": -4, "registers": []}}}',
            "-4 is not",
        ),
        ('{"format": 1, "devices": [], "groups": {}, "layout": {}}', "is damaged"),
    ],
)
def test_damaged_locks_are_refused(tmp_path, text, message):
    path = tmp_path / "x.lock.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_lock(path)
    assert "--relock" in str(caught.value) and "x.lock.json" in str(caught.value)


def test_a_field_outside_its_register_is_refused(tmp_path):
    data = json.loads(lock_text(design()))
    data["layout"]["Uart"]["registers"][0]["fields"][0]["bit"] = 32
    path = tmp_path / "x.lock.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="'enable' does not fit its register"):
        read_lock(path)


def test_a_lock_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read lock file"):
        read_lock(tmp_path / "none.json")
