"""Register maps of existing hardware: read, described as groups, locked, and exported again bit for bit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from edgewright.cli import main
from edgewright.errors import EdgewrightError, InputError
from edgewright.hal.design import Design
from edgewright.hal.design_flow import analyse
from edgewright.hal.export import exports
from edgewright.hal.export.svd import svd
from edgewright.hal.export.systemrdl import system_rdl
from edgewright.hal.importing import import_files, imported
from edgewright.hal.importing.fixed_map import registers_in
from edgewright.hal.layout.layout import elaborate
from edgewright.hal.layout_choice import chosen_design
from edgewright.hal.lock.lock_file import lock_text, read_lock
from tests.helpers.damage import damaged_text

FILES = Path(__file__).parent / "svd"
HERE = {"fe310_uart": ("UART0", "UART1"), "nrf52_timer": ("TIMER0",), "pl080_dma": ("DMAC",)}
DRIVER = '#include "{}"\nvoid nothing(void) {{}}\n'


def design_of(maps, folder: Path, code: str = "", stem: str = "it") -> Design:
    """A driver with that code for the maps, laid out by their lock."""
    for name, text in import_files(maps, "it.svd", stem).items():
        (folder / name).write_text(text)
    (folder / "driver.c").write_text(DRIVER.format(f"{stem}.h") + code)
    return chosen_design(analyse([folder / "driver.c"]), lock=read_lock(folder / f"{stem}.lock.json"))


def described(root: ElementTree.Element):
    """Every field of a file: address, width, bits, access, effects. Written for these files, and sharing no code."""
    peripherals = {p.findtext("name"): p for p in root.iter("peripheral")}
    found = []
    for peripheral in peripherals.values():
        origin = peripherals.get(peripheral.get("derivedFrom"), peripheral)
        base = int(peripheral.findtext("baseAddress"), 0)
        for node in origin.find("registers"):
            for start in starts(node, base):
                inner = node.iterfind("register") if node.tag == "cluster" else [node]
                for register in inner:
                    places = starts(register, start) if register is not node else [start]
                    found += [of for place in places for of in fields(register, place)]
    return sorted(found)


def starts(node, base):
    first = base + int(node.findtext("addressOffset"), 0)
    return [first + n * int(node.findtext("dimIncrement") or "0", 0) for n in range(int(node.findtext("dim") or 1))]


def fields(register, place):
    width = int(register.findtext("size") or "32", 0)

    def said(node, tag, default=""):
        return node.findtext(tag) or register.findtext(tag) or default

    nodes = register.findall("fields/field")
    for node in nodes or [register]:
        bits = (width - 1, 0)
        if node.find("bitRange") is not None:
            bits = tuple(map(int, node.findtext("bitRange")[1:-1].split(":")))
        elif node.find("bitOffset") is not None:
            low = int(node.findtext("bitOffset"))
            bits = (low + int(node.findtext("bitWidth")) - 1, low)
        reset = int(register.findtext("resetValue") or "0", 0) >> bits[1] & ((2 << bits[0] - bits[1]) - 1)
        effects = said(node, "modifiedWriteValues"), said(node, "readAction")
        yield place, width, *bits, said(node, "access", "read-write"), *effects, reset


@pytest.mark.parametrize("name", HERE)
def test_a_map_goes_round_bit_for_bit(name, tmp_path):
    design = design_of(imported(FILES / f"{name}.svd", "svd", HERE[name]), tmp_path)
    before = described(ElementTree.parse(FILES / f"{name}.svd").getroot())
    assert described(ElementTree.fromstring(svd(design, name))) == before
    assert len(before) > 10


@pytest.mark.parametrize("name", ["I2C1", "GPIOA", "USART1"])
def test_peripherals_of_a_vendor_go_round_bit_for_bit(name, tmp_path):
    """STM32F103 as version 0.4 of cmsis-svd carries it, the last one with files; effects are not said there."""
    package = find_spec("cmsis_svd")
    file = Path(package.origin).parent / "data/STMicro/STM32F103xx.svd" if package and package.origin else Path("?")
    if not file.is_file():
        pytest.skip("cmsis-svd 0.4 is not installed")
    design = design_of(imported(file, "svd", (name,)), tmp_path)
    root = ElementTree.parse(file).getroot()
    for peripherals in root.iter("peripherals"):
        for other in [one for one in peripherals if one.findtext("name") != name]:
            peripherals.remove(other)
    before, after = (
        {(place, high, low) for place, _, high, low, *_ in of}
        for of in (described(root), described(ElementTree.fromstring(svd(design, name))))
    )
    assert after == before and len(before) > 20


@pytest.mark.parametrize("name", HERE)
def test_names_go_round_too(name, tmp_path):
    design = design_of(imported(FILES / f"{name}.svd", "svd", HERE[name][:1]), tmp_path)

    def names(root):
        registers = root.find("peripherals/peripheral/registers")
        return {(r.findtext("name"), f.findtext("name")) for r in registers.iter("register") for f in r.iter("field")}

    before = names(ElementTree.parse(FILES / f"{name}.svd").getroot())
    assert before <= names(ElementTree.fromstring(svd(design, name)))


def test_a_driver_keeps_the_map_and_merges(tmp_path):
    """Four writes of one register become one; what else is in it stays."""
    code = """
    void move(uint32_t n, uint32_t from, uint32_t to, uint16_t words) {
        bfGroup DMAC_CHANNEL *channel = &dmac->CHANNEL[n];
        channel->SRCADDR = from;
        channel->DESTADDR = to;
        channel->CONTROL.TRANSFERSIZE = words;
        channel->CONTROL.SWIDTH = DMAC_CHANNEL_CONTROL_SWIDTH_WORD;
        channel->CONTROL.DWIDTH = 2;
        channel->CONTROL.SI = 1;
    }
    """
    design = design_of(imported(FILES / "pl080_dma.svd", "svd"), tmp_path, code)
    assert [len(merge.uses) for merge in design.merging["move"].merges] == [4]
    assert design.layout.is_fixed
    found = {
        (at.offset, f.name, f.bit)
        for at in elaborate(design.analysis.description, design.analysis.spaces, design.layout)
        for f in at.fields
    }
    assert (0x100 + 7 * 0x20 + 12, "CHANNEL[7].CONTROL.SWIDTH", 18) in found


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("fe310_uart", "int f(void) { return uart0->RXDATA.EMPTY; }", "would read RXDATA_DATA too, which acts"),
        ("nrf52_timer", "void f(void) { timer0->NEW = 1; }", "NEW"),
    ],
)
def test_code_that_the_map_cannot_serve_is_refused(name, code, message, tmp_path):
    maps = imported(FILES / f"{name}.svd", "svd", HERE[name][:1])
    with pytest.raises(EdgewrightError, match=message):
        design_of(maps, tmp_path, code)


def test_nothing_is_added_to_a_fixed_map(tmp_path):
    design_of(imported(FILES / "nrf52_timer.svd", "svd"), tmp_path)
    header = tmp_path / "it.h"
    header.write_text(header.read_text().replace("uint32 CC[4];", "uint32 CC[4]; bit extra;"))
    with pytest.raises(InputError, match="'extra' of TIMER0 is not in the map"):
        chosen_design(analyse([tmp_path / "driver.c"]), lock=read_lock(tmp_path / "it.lock.json"))


def small(registers: str, size: int = 32) -> str:
    return (
        f"<device><name>d</name><size>{size}</size><peripherals><peripheral><name>P</name>"
        f"<baseAddress>0x1000</baseAddress><registers>{registers}</registers></peripheral></peripherals></device>"
    )


def register(name: str, offset: int, inside: str = "", more: str = "") -> str:
    return f"<register>{more}<name>{name}</name><addressOffset>{offset}</addressOffset>{inside}</register>"


def read(text: str, folder: Path):
    (folder / "x.svd").write_text(text)
    return imported(folder / "x.svd", "svd")


def test_widths_lists_and_arrays_of_fields(tmp_path):
    lanes = "<fields><field><dim>8</dim><dimIncrement>2</dimIncrement><name>MODE%s</name>{}</field></fields>"
    text = small(
        register("A%s", 0, more="<dim>2</dim><dimIncrement>2</dimIncrement><dimIndex>X,Y</dimIndex>")
        + register("B", 4, lanes.format("<lsb>0</lsb><msb>1</msb>"))
        + register("C", 8, "<size>8</size><resetValue>0xA5</resetValue>")
        + register("int", 10, "<access>read-only</access>"),
        16,
    )
    maps = read(text, tmp_path)
    assert [r.name for r in registers_in(maps[0].items)] == ["AX", "AY", "B", "C", "int_"]
    assert maps[0].bus == (16, 8)
    design = design_of(maps, tmp_path, "void f(int i, int m) { p->B.MODE[i] = m; p->C = 1; }")
    places = elaborate(design.analysis.description, design.analysis.spaces, design.layout)
    modes = [(f.name, f.bit) for at in places if at.offset == 4 for f in at.fields]
    assert modes == [(f"B.MODE[{n}]", 2 * n) for n in range(8)]
    assert [at.width for at in places] == [16, 16, 16, 8, 16]


def test_what_a_group_cannot_say_is_named(tmp_path):
    text = small(register("RBR", 0) + register("THR", 0) + register("WIDE", 8, "<size>64</size>"))
    (found,) = read(text, tmp_path)
    assert found.left_out == (
        "P.THR lies where RBR is, at 0x0",
        "P.WIDE is 64 bits wide, and a bus does 8, 16 or 32",
    )
    assert "Left out: P.THR lies where RBR is" in import_files([found], "x.svd", "p")["p.h"]


def test_what_cannot_be_read_back_is_a_command(tmp_path):
    """A write-only bit beside others gets 0 when these are written."""
    both = "<fields>{}{}</fields>".format(
        "<field><name>GO</name><bitRange>[0:0]</bitRange><access>write-only</access></field>",
        "<field><name>MODE</name><bitRange>[2:1]</bitRange></field>",
    )
    maps = read(small(register("CR", 0, both)), tmp_path)
    design_of(maps, tmp_path, "void f(int m) { p->CR.MODE = m; p->CR.GO = 1; }")
    assert "bit wo w1s GO;" in (tmp_path / "it.h").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<device>", "is damaged: no element found"),
        ("<other/>", "is no SVD file: its root is <other>"),
        ("<device/>", "has no peripherals"),
        (small(register("", 0)), "a <register> has no name"),
        (small("<register><name>A</name></register>"), "'A' has no <addressOffset>"),
        (small(register("A", 0, "<size>x</size>")), "'A' has <size> 'x', which is no number"),
        (small(register("A", 0, "<access>never</access>")), "'A' has access 'never'"),
        (small(register("A", 0, more="<dim>99999999</dim>")), "'A' has 99999999 elements"),
        (small(register("A", 0, "<fields><field><name>F</name><bitRange>[x]</bitRange></field></fields>")), "x"),
        (small('<register derivedFrom="B"><name>A</name></register>'), "derived from 'B', which leads nowhere"),
        (small(""), "has no registers that a group can describe"),
    ],
)
def test_damaged_files_are_refused_in_a_sentence(text, message, tmp_path):
    with pytest.raises(InputError, match=message.replace("[", r"\[")) as caught:
        read(text, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", HERE)
def test_files_damaged_at_random_are_read_or_refused(name, tmp_path):
    sound = (FILES / f"{name}.svd").read_bytes()
    refused = 0
    for seed in range(60):
        (tmp_path / "x.svd").write_bytes(damaged_text(Random(seed), sound, sound))
        try:
            import_files(imported(tmp_path / "x.svd", "svd", HERE[name][:1]), "x.svd", "x")
        except InputError:
            refused += 1
    assert refused


def test_system_rdl_goes_round(tmp_path):
    pytest.importorskip("systemrdl")
    design = design_of(imported(FILES / "pl080_dma.svd", "svd"), tmp_path)
    (tmp_path / "it.rdl").write_text(system_rdl(design, "it"))
    maps = imported(tmp_path / "it.rdl", "rdl")
    assert maps[0].devices == (("dmac", 0x50004000),)
    again = design_of([replace(maps[0], name="DMAC")], tmp_path, stem="again")
    assert described(ElementTree.fromstring(svd(again, "x"))) == described(ElementTree.fromstring(svd(design, "x")))


@pytest.mark.parametrize("text", ["", "addrmap {", "reg x {};", "addrmap top { reg { field {} a[40]; } r; };"])
def test_damaged_rdl_is_refused_in_a_sentence(text, tmp_path):
    pytest.importorskip("systemrdl")
    (tmp_path / "x.rdl").write_text(text)
    with pytest.raises(InputError) as caught:
        imported(tmp_path / "x.rdl", "rdl")
    assert "\n" not in str(caught.value)


def test_the_command_writes_a_header_and_a_lock(tmp_path):
    run = CliRunner().invoke
    out = tmp_path / "out"
    done = run(main, ["hal", "--from-svd", str(FILES / "fe310_uart.svd"), "--peripheral", "UART1", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in out.iterdir()) == ["uart0.h", "uart0.lock.json"]
    assert "make_device(UART0, uart1, 0x10023000);" in (out / "uart0.h").read_text()
    driver = tmp_path / "driver.c"
    driver.write_text('#include "uart0.h"\nvoid f(int n) { uart1->TXCTRL.TXCNT = n; uart1->TXCTRL.TXEN = 1; }\n')
    lock = out / "uart0.lock.json"
    kept = lock.read_text()
    options = ["--no-verify", "-I", str(out), "--lock", str(lock), "-o", str(tmp_path / "gen"), "--json"]
    done = run(main, ["hal", str(driver), *options])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["functions"]["f"]["accesses_after"] == 2
    assert lock.read_text() == kept


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from-svd", "{svd}"], "needs -o"),
        (["--from-svd", "{svd}", "-o", "{out}"], "has 2 peripherals. Name one with --peripheral: UART0, UART1"),
        (["--from-svd", "{svd}", "--peripheral", "SPI", "-o", "{out}"], "has no peripheral 'SPI'"),
        (["--peripheral", "SPI"], "--peripheral is for"),
        ([], "Missing argument 'FILES...'"),
    ],
)
def test_wrong_options_are_told(options, message, tmp_path):
    words = [o.format(svd=FILES / "fe310_uart.svd", out=tmp_path / "out") for o in options]
    done = CliRunner().invoke(main, ["hal", *words])
    assert done.exit_code in (1, 2) and message in " ".join(done.output.split())


def test_a_changed_field_changes_one_line_of_the_lock(tmp_path):
    """Lock files have a line for each field, in an order of their own."""
    source = '#include "edgewright_hal.h"\nbfGroup G {{ {} }};\nmake_device(G, g, 0x1000);\nvoid f(void) {{}}\n'
    texts = []
    for members in ("bit b; bit a; uint32 c;", "uint32 c; bit a; bit b;", "bit b; bit a; uint32 c; uint8 d;"):
        (tmp_path / "g.c").write_text(source.format(members))
        path = tmp_path / "g.lock.json"
        lock = read_lock(path) if path.exists() else None
        texts.append(lock_text(chosen_design(analyse([tmp_path / "g.c"]), lock=lock)))
        path.write_text(texts[-1])
    assert texts[0] == texts[1]
    new = [line for line in texts[2].splitlines() if line not in texts[1].splitlines()]
    assert sum('"d"' in line for line in new) == 2 and len(new) <= 9


def test_protection_and_descriptions_reach_the_documents(tmp_path):
    """What the file says of a peripheral holds for all registers that say nothing else."""
    flags = "<description>Flags</description><fields><field><name>EN</name><bitRange>[0:0]</bitRange></field></fields>"
    text = small(
        register("KEY", 0, "<protection>s</protection><description>The key</description>")
        + register("CR", 4, f"<protection>p</protection>{flags}")
        + register("SR", 8, flags)
    ).replace("<name>P</name>", "<name>P</name><addressBlock><protection>n</protection></addressBlock>")
    design = design_of(read(text, tmp_path), tmp_path)
    for document in (svd(design, "x"), system_rdl(design, "x"), (tmp_path / "it.h").read_text()):
        assert "The key" in document and "Flags" in document
    for document in (svd(design, "x"), system_rdl(design, "x")):
        for word in ("secure", "privileged", "non-secure"):
            assert len(re.findall(rf"(?<![\w-]){word} access only", document)) == 1
    assert re.findall("<protection>(.)", svd(design, "x")) == ["s", "p", "n"]


def test_the_byte_order_of_the_processor_is_told_of(tmp_path):
    text = small(register("A", 0)).replace("<name>d</name>", "<name>d</name><cpu><endian>{}</endian></cpu>")
    assert not read(text.format("little"), tmp_path)[0].left_out
    assert "the byte order of the processor (big)" in read(text.format("big"), tmp_path)[0].left_out[0]
    with pytest.raises(InputError, match="'A' has <protection> 'x'; it is s, n or p"):
        read(small(register("A", 0, "<protection>x</protection>")), tmp_path)


@pytest.mark.parametrize(
    ("order", "field", "message"),
    [("bigendian", "f[7:0]", "top.u is bigendian"), ("msb0", "f[0:7]", "bits of top.u.ctrl.f are in msb0 order")],
)
def test_other_orders_of_bytes_and_bits_are_refused(order, field, message, tmp_path):
    pytest.importorskip("systemrdl")
    inner = f"addrmap u {{ {order}; reg {{ field {{}} {field}; }} ctrl @ 0; }};"
    (tmp_path / "x.rdl").write_text(f"{inner} addrmap top {{ u u @ 0; }};")
    with pytest.raises(InputError, match=message):
        imported(tmp_path / "x.rdl", "rdl")
    (tmp_path / "x.rdl").write_text(
        f"{inner} addrmap top {{ u u @ 0; }};".replace(f"{order};", "").replace("0:7", "7:0")
    )
    assert imported(tmp_path / "x.rdl", "rdl")


def test_ip_xact_is_read_with_the_importer_of_peakrdl(tmp_path):
    pytest.importorskip("peakrdl_ipxact")
    design = design_of(imported(FILES / "pl080_dma.svd", "svd"), tmp_path)
    made = exports(design, "it", ["ipxact"])
    (tmp_path / "it.xml").write_bytes(made["ipxact/it_map.xml"])
    (found,) = imported(tmp_path / "it.xml", "rdl", ["dmac"])
    assert (found.name, found.devices) == ("dmac", (("dmac", 0x50004000),))
    again = design_of([replace(found, name="DMAC")], tmp_path, stem="again")
    assert described(ElementTree.fromstring(svd(again, "x"))) == described(ElementTree.fromstring(svd(design, "x")))
    (tmp_path / "it.xml").write_bytes(made["ipxact/it_map.xml"][:900])
    with pytest.raises(InputError, match=r"IP-XACT file .* does not compile"):
        imported(tmp_path / "it.xml", "rdl")
