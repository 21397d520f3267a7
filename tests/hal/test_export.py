"""Exported register maps, read back by the compilers and parsers they are made for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from edgewright.errors import InputError
from edgewright.hal import examples
from edgewright.hal.design_flow import analyse
from edgewright.hal.design_flow import design as make_design
from edgewright.hal.export import exports, peakrdl
from edgewright.hal.export.cmsis_header import _struct, cmsis_header
from edgewright.hal.export.svd import svd
from edgewright.hal.export.systemrdl import system_rdl
from edgewright.hal.export.table import Table, TableBlock, TableRegister
from edgewright.hal.generate import generate
from edgewright.hal.importing.fixed_map import FixedCluster
from edgewright.hal.importing.header_reader import read_header
from edgewright.hal.layout.cost import LayoutGoal
from edgewright.hal.layout.layout import Piece, elaborate
from edgewright.hal.layout.paper import lay_out_paper
from edgewright.hal.layout_choice import chosen_design
from tests.hal.designs import DESCRIPTION, LAYOUT, SPACES, design, register

systemrdl = pytest.importorskip("systemrdl")


EXAMPLES = Path(examples.__file__).parent


def truth(layout=LAYOUT, description=DESCRIPTION, spaces=SPACES):
    """Address, width, bit and size of every field, by the layout alone."""
    addresses = {device.name: device.address for device in description.devices}
    return {
        (addresses[at.device] + at.offset, at.width, field.bit, field.size)
        for at in elaborate(description, spaces, layout)
        for field in at.fields
    }


def compiled(text, tmp_path):
    return peakrdl.compiled(text, tmp_path / "it.rdl")


def fields_of(top):
    return [
        (reg.absolute_address, reg.get_property("regwidth"), field.low, field.width)
        for reg in top.descendants(unroll=True)
        if isinstance(reg, systemrdl.RegNode)
        for field in reg.fields()
    ]


def test_system_rdl_has_every_field_where_the_layout_put_it(tmp_path):
    found = fields_of(compiled(system_rdl(design(), "uart"), tmp_path))
    assert set(found) == truth() and len(found) == len(truth())


def test_system_rdl_says_what_accesses_do(tmp_path):
    top = compiled(system_rdl(design(), "uart"), tmp_path)
    get = top.find_by_path

    def properties(path, *names):
        return tuple(get(path).get_property(name) for name in names)

    kinds = systemrdl.rdltypes
    assert properties("uart0.errors.errors", "onread") == (kinds.OnReadType.rclr,)
    assert properties("uart0.pending.pending", "onwrite") == (kinds.OnWriteType.woclr,)
    assert properties("uart0.pending.raise", "onwrite") == (kinds.OnWriteType.woset,)
    assert properties("uart0.data.data", "swacc", "swmod") == (True, True)
    assert properties("uart1.command.command", "sw", "hw") == (kinds.AccessType.w, kinds.AccessType.r)
    assert properties("uart1.busy.busy", "sw", "hw") == (kinds.AccessType.r, kinds.AccessType.w)
    assert properties("uart1.enable.divider", "reset") == (0xABC,)
    assert get("uart1.pads[3].out").absolute_address == 0x40001000 + 68 + 24


def test_arrays_with_something_in_their_gaps_are_written_out(tmp_path):
    """A scalar between the elements of an array: SystemRDL calls that an overlap."""
    uart = LAYOUT.spaces["Uart"]
    kept = [r for r in uart.registers if r.pieces[0].slot not in ("pads_out", "busy")]
    pads = register(72 - 4, Piece("pads_out", 0, 1), counts=(4,), strides=(16,))
    moved = replace(uart, registers=(*kept, pads, register(76, Piece("busy", 0, 1))), size=256)
    moved = replace(moved, areas=(replace(uart.areas[0], offset=128),))
    layout = replace(LAYOUT, spaces={**LAYOUT.spaces, "Uart": moved})
    # pads_dir has stride 8 from 64, pads_out 16 from 68: they meet only in the gaps.
    found = fields_of(compiled(system_rdl(design(layout), "uart"), tmp_path))
    assert set(found) == truth(layout)


def test_words_of_system_rdl_are_escaped(tmp_path):
    uart = SPACES["Uart"]
    slots = tuple(replace(s, steps=(("field", None),)) if s.name == "busy" else s for s in uart.slots)
    made = design()
    analysis = replace(made.analysis, spaces={**SPACES, "Uart": replace(uart, slots=slots)})
    top = compiled(system_rdl(replace(made, analysis=analysis), "uart"), tmp_path)
    assert top.find_by_path("uart0.field").absolute_address == 0x40000004


def svd_fields(text):
    root = ElementTree.fromstring(text.partition("\n")[2])
    peripherals = {p.findtext("name"): p for p in root.iter("peripheral")}
    for peripheral in peripherals.values():
        base = int(peripheral.findtext("baseAddress"), 16)
        model = peripherals[peripheral.get("derivedFrom") or peripheral.findtext("name")]
        yield from svd_registers(model.find("registers"), base)


def svd_registers(parent, base):
    for element in [*parent.findall("register"), *parent.findall("cluster")]:
        for i in range(int(element.findtext("dim") or 1)):
            at = base + int(element.findtext("addressOffset"), 16)
            at += i * int(element.findtext("dimIncrement") or "0", 16)
            if element.tag == "cluster":
                yield from svd_registers(element, at)
                continue
            for field in element.iter("field"):
                where = int(field.findtext("bitOffset")), int(field.findtext("bitWidth"))
                yield at, int(element.findtext("size")), *where


def test_svd_has_every_field_where_the_layout_put_it():
    found = list(svd_fields(svd(design(), "uart")))
    assert set(found) == truth() and len(found) == len(truth())


def test_svd_says_what_accesses_do():
    root = ElementTree.fromstring(svd(design(), "uart").partition("\n")[2])
    by_name = {field.findtext("name"): field for field in root.iter("field")}
    told = {
        name: [by_name[name].findtext(tag) for tag in ("access", "modifiedWriteValues", "readAction")]
        for name in ("enable", "errors", "pending", "raise", "data", "command", "busy")
    }
    assert told == {
        "enable": ["read-write", None, None],
        "errors": ["read-only", None, "clear"],
        "pending": ["read-write", "oneToClear", None],
        "raise": ["read-write", "oneToSet", None],
        "data": ["read-write", "modify", "modify"],
        "command": ["write-only", "modify", None],
        "busy": ["read-only", None, None],
    }
    first = next(root.iter("register"))
    assert first.findtext("resetValue") == hex(0xABC << 16 | 2 << 1).replace("abc", "ABC")


@pytest.mark.parametrize("name", ["gpio", "spi", "uart", "timer", "dma"])
def test_both_formats_have_every_field_of_the_examples(name, tmp_path):
    analysis = analyse([EXAMPLES / f"{name}.c"], [EXAMPLES])
    layout = lay_out_paper(analysis.description, analysis.spaces, analysis.joints)
    files = exports(make_design(analysis, layout), name)
    expected = truth(layout, analysis.description, analysis.spaces)
    assert set(fields_of(compiled(files[f"{name}.rdl"], tmp_path))) == expected
    assert set(svd_fields(files[f"{name}.svd"])) == expected


# The order of children in the schema of CMSIS-SVD 1.3, which is a sequence.
ORDER = {
    "device": "name version description addressUnitBits width size resetMask peripherals",
    "peripheral": "name description baseAddress addressBlock registers",
    "cluster": "dim dimIncrement name description addressOffset register",
    "register": "dim dimIncrement name description addressOffset size resetValue resetMask fields",
    "field": "name description bitOffset bitWidth access modifiedWriteValues readAction",
}


def test_svd_keeps_the_order_of_its_schema():
    root = ElementTree.fromstring(svd(design(), "uart").partition("\n")[2])
    for element in root.iter():
        if element.tag in ORDER:
            places = [ORDER[element.tag].split().index(child.tag) for child in element]
            assert places == sorted(places), element.tag


def test_peakrdl_makes_the_other_formats():
    pytest.importorskip("peakrdl_regblock")
    files = exports(design(), "uart", ["ipxact", "regblock", "cheader"])
    assert {"ipxact/uart_map.xml", "regblock/Uart.sv", "regblock/Uart_pkg.sv", "cheader/uart_map.h"} < set(files)
    assert b"module Uart" in files["regblock/Uart.sv"]
    assert b"divider" in files["ipxact/uart_map.xml"]


def test_a_missing_extra_is_named(monkeypatch):
    def nothing(name):
        raise ImportError(name)

    monkeypatch.setattr(peakrdl, "import_module", nothing)
    with pytest.raises(InputError, match=r"edgewright\[rdl\]"):
        exports(design(), "uart", ["html"])


SAID = """
#include "edgewright_hal.h"
/* Licence: anything goes. */

/* Counts "ticks". */
bfGroup Counter {
    /* Starts and stops it. */
    bit enable;
    uint3 w1c events; // done, overrun, limit */
    uint8 rx_level, rx_limit; /**< @brief of the FIFO
                               *   /* that receives */
    uint8 plain;
};
make_device(Counter, counter, 0x40000000);
void start(void) { assign(counter, rx_level = 1, rx_limit = 2); counter->enable = 1; }
void put(void) { counter->plain = 3; }
"""


def test_comments_of_fields_and_groups_reach_documents_and_the_header(tmp_path):
    """Whatever way they are written, and as comments that close where they should."""
    (tmp_path / "driver.c").write_text(SAID)
    made = chosen_design(analyse([tmp_path / "driver.c"]))
    documents = exports(made, "driver")
    top = compiled(documents["driver.rdl"], tmp_path).find_by_path("counter")
    assert top.get_property("desc") == 'Counts "ticks".'
    fields = {field.inst_name: field.get_property("desc") for field in top.descendants() if hasattr(field, "low")}
    assert fields["enable"] == "Starts and stops it."
    assert str(fields["events"]).startswith("done, overrun, limit; writing 1 clears")
    assert fields["rx_level"] == fields["rx_limit"] == "of the FIFO / * that receives"
    assert fields["plain"] is None
    told = [element.text for element in ElementTree.fromstring(documents["driver.svd"]).iter("description")]
    assert 'Counts "ticks".' in told and "of the FIFO / * that receives" in told
    header = generate(made, "driver")["driver_hal.h"]
    assert "\n *   events: done, overrun, limit\n" in header and "plain:" not in header
    assert header.count("/*", 0, header.index("#ifndef")) == header.count("*/", 0, header.index("#ifndef")) == 1


def test_registers_are_called_after_what_they_hold(tmp_path):
    (tmp_path / "driver.c").write_text(SAID.replace("uint8 rx_level,", "uint16 together(rx_limit) rx_level; uint16"))
    documents = exports(chosen_design(analyse([tmp_path / "driver.c"])), "driver")
    names = [
        register.inst_name
        for register in compiled(documents["driver.rdl"], tmp_path).find_by_path("counter").children()
    ]
    assert "rx" in names


def places_in(items, start=0):
    """Address in the device, width, bit and size of every field of a map that was read from a file."""
    for item in items:
        for number in range(item.count or 1):
            at = start + item.offset + number * item.stride
            if isinstance(item, FixedCluster):
                yield from places_in(item.items, at)
            else:
                yield from ((at, item.width, field.bit, field.size) for field in item.fields)


@pytest.mark.parametrize("name", ["", "gpio", "uart", "dma"])
def test_a_cmsis_header_has_every_field_where_the_layout_put_it(name, tmp_path):
    """As libclang lays its structs out, and as its own reader takes its macros."""
    made = design()
    if name:
        made = chosen_design(analyse([EXAMPLES / f"{name}.c"]), goal=LayoutGoal(minimise="map"))
    (tmp_path / "it.h").write_text(cmsis_header(made, "it"))
    description, registers = (
        made.analysis.description,
        elaborate(made.analysis.description, made.analysis.spaces, made.layout),
    )
    for device in description.devices:
        (found,) = read_header(tmp_path / "it.h", [device.name.upper()])
        assert dict(found.devices)[device.name.upper()] == device.address
        known = [
            (one.offset, one.width, f.bit, f.size) for one in registers if one.device == device.name for f in one.fields
        ]
        assert sorted(places_in(found.items)) == sorted(known) and known


def test_a_cmsis_header_says_what_it_cannot_be():
    """Narrow and wide registers that repeat together where no C struct can lie."""
    both = TableBlock("BOTH", 1, (TableRegister("data", 0, 8, ()), TableRegister("level", 3, 32, ())), 2, 8)
    with pytest.raises(InputError, match=r"Odd.BOTH at 0x1 repeats every 8 bytes.*Leave --cmsis out"):
        list(_struct(Table("Odd", "", 20, (both,)), [both], "Odd"))
