"""What hardware demands of a layout and a description beyond what code can show: strides, addresses at run time,
fields that others lock."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgewright.errors import EdgewrightError
from edgewright.hal.design import Design
from edgewright.hal.design_flow import analyse, naive
from edgewright.hal.export import exports
from edgewright.hal.export.record import record
from edgewright.hal.generate import generate
from edgewright.hal.importing.fixed_map import registers_in
from edgewright.hal.importing.rdl_reader import read_rdl
from edgewright.hal.importing.svd_reader import read_svd
from edgewright.hal.language.description import Refused
from edgewright.hal.layout.cost import LayoutGoal
from edgewright.hal.layout.judge import faults
from edgewright.hal.layout_choice import chosen_design
from edgewright.hal.lock.lock_file import lock_text, read_lock
from edgewright.hal.verify.peripheral import Peripheral
from edgewright.hal.verify.verifier import missing_tools, verify
from edgewright.report.hal_page import hal_page

RING = """
#include "edgewright_hal.h"
bfGroup Descriptor {
    uint32 pin(0, 0) buffer;
    uint16 pin(4, 0) length;
    bit hw pin(8, 31) own;
    uint8 cookie;
};
bfGroup Ring { bit go; bfGroup Descriptor STRIDE entries[4]; };
make_device(Ring, ring, 0x20004000);
void give(uint32_t n, uint32_t address, uint16_t bytes)
{
    bfGroup Descriptor *d = &ring->entries[n & 3u];
    d->buffer = address;
    d->length = bytes;
    d->cookie = 3;
    d->own = 1;
}
"""


def made(folder: Path, text: str, minimise: str = "balanced") -> Design:
    (folder / "driver.c").write_text(text)
    return chosen_design(analyse([folder / "driver.c"]), goal=LayoutGoal(minimise=minimise))


def refused(folder: Path, text: str) -> str:
    with pytest.raises(Refused) as refusal:
        made(folder, text)
    return str(refusal.value)


@pytest.mark.parametrize(("stride", "minimise"), [(16, "map"), (64, "code")])
def test_descriptors_lie_as_far_apart_as_is_stated(tmp_path, stride, minimise):
    design = made(tmp_path, RING.replace("STRIDE", f"stride({stride})"), minimise)
    assert design.layout.spaces["Descriptor"].size == stride
    assert design.layout.spaces["Ring"].place_of("entries").strides == (stride,)
    header = generate(design, "driver")["driver_hal.h"]
    assert re.search(rf"sizeof\(struct Descriptor\) == {stride}u", header)


def test_a_stride_holds_with_a_lock_and_without_pointers(tmp_path):
    text = RING.replace("STRIDE", "stride(32)").replace("&ring->entries[n & 3u]", "&ring->entries[1]")
    lock = tmp_path / "driver.lock.json"
    lock.write_text(lock_text(made(tmp_path, text)))
    again = chosen_design(analyse([tmp_path / "driver.c"]), lock=read_lock(lock))
    assert again.layout.spaces["Descriptor"].size == 32
    (tmp_path / "driver.c").write_text(text.replace("stride(32)", "stride(48)"))
    with pytest.raises(EdgewrightError, match="lie 32 bytes apart, but Descriptor needs 48"):
        chosen_design(analyse([tmp_path / "driver.c"]), lock=read_lock(lock))


def test_the_judge_measures_the_stride_itself(tmp_path):
    layout = made(tmp_path, RING.replace("STRIDE", "stride(32)")).layout
    (tmp_path / "other.c").write_text(RING.replace("STRIDE", "stride(64)"))
    other = analyse([tmp_path / "other.c"])
    found = faults(other.description, other.spaces, layout, other.joints)
    assert "Descriptor: its elements lie 32 bytes apart, and a stride of 64 is stated" in found


@pytest.mark.parametrize(
    ("stride", "why"),
    [
        ("stride(18)", "begin at whole words of 32 bits; take a multiple of 4"),
        ("stride(8)", "'Descriptor::own' ends at byte 12; pin it lower, or take a larger stride"),
        ("stride(16) stride(32)", "has stride twice"),
        ("ro", "is a group and has attributes"),
        ("stride(1.5)", "has a stride that is no constant"),
    ],
)
def test_strides_that_cannot_be(tmp_path, stride, why):
    assert why in refused(tmp_path, RING.replace("STRIDE", stride))


def test_strides_of_what_is_no_array_of_groups(tmp_path):
    assert "is no array" in refused(
        tmp_path, RING.replace("STRIDE entries[4]", "stride(16) entries").replace("[n & 3u]", "")
    )
    assert "give stride to an array of groups" in refused(
        tmp_path, RING.replace("STRIDE", "").replace("bit go", "bit stride(4) go")
    )
    two = RING.replace("STRIDE entries[4];", "stride(16) entries[4]; bfGroup Descriptor stride(32) more[2];")
    assert "another array of 'Descriptor' has one of 16; define a group for each" in refused(tmp_path, two)


def test_what_does_not_fit_into_the_stride_is_named(tmp_path):
    with pytest.raises(EdgewrightError, match="Descriptor: its elements lie 16 bytes apart, and a stride of 12"):
        made(tmp_path, RING.replace("STRIDE", "stride(12)"))


@pytest.mark.skipif(bool(missing_tools("rv32imc")), reason="needs a cross compiler and Unicorn")
def test_descriptors_with_a_stride_are_verified(tmp_path):
    design = made(tmp_path, RING.replace("STRIDE", "stride(20)"))
    result = verify(design.analysis, design, calls=8, measure=False)
    assert result.is_equal
    assert all(function.calls for function in result.functions)


MAPPED = """
#include "edgewright_hal.h"
bfGroup Uart { bit enable; uint4 mode; uint16 divider; bit ro busy; uint8 wo wse(busy) data; };
mapped_device(Uart, uart);
make_device(Uart, fixed, 0x40010000);
bus(uart, 32, 32);
void *ioremap(uint32_t at, uint32_t size);
struct state { int number; bfGroup Uart *regs; };
static bfGroup Uart *console;
static struct state only;
int probe(struct state *s, uint32_t at)
{
    s->regs = uart_at(ioremap(at, 0x100));
    if (!s->regs)
        return -12;
    assign(s->regs, divider = 26, mode = 3, enable = 1);
    return 0;
}
void console_init(uint32_t at) { console = uart_at((void *)(uintptr_t)at); }
void put(uint8_t c) { if (console->busy) return; console->data = c; }
void stop(void) { only.regs->enable = 0; }
void open(uint32_t at) { only.regs = uart_at((const void *)(uintptr_t)at); }
"""


def test_devices_that_are_mapped_at_run_time_have_pointers_of_the_driver(tmp_path):
    design = made(tmp_path, MAPPED)
    device = design.analysis.description.device("uart")
    assert device.is_mapped and abs(device.address - 0x40010000) >= 1 << 20
    files = generate(design, "driver")
    assert "hal_mapped_device(Uart, uart);" in files["driver_hal.h"]
    assert "mapped_device" not in files["driver.c"] and "uart_at(ioremap(at, 0x100))" in files["driver.c"]
    documents = exports(design, "driver")
    assert (
        documents["driver.rdl"].count("mapped at run time") == documents["driver.svd"].count("mapped at run time") == 1
    )
    told = record(design, naive(design.analysis))["devices"]
    assert [(one["name"], one["address"]) for one in told] == [("fixed", 0x40010000), ("uart", None)]


def test_a_lock_says_nothing_of_where_mapped_devices_are(tmp_path):
    lock, before = tmp_path / "driver.lock.json", made(tmp_path, MAPPED)
    lock.write_text(lock_text(before))
    at = before.analysis.description.device("uart").address
    (tmp_path / "driver.c").write_text(MAPPED + f"make_device(Uart, another, {at});")
    again = chosen_design(analyse([tmp_path / "driver.c"]), lock=read_lock(lock))
    assert again.analysis.description.device("uart").address != at


@pytest.mark.skipif(bool(missing_tools("rv32imc")), reason="needs a cross compiler and Unicorn")
def test_pointers_from_outside_lead_to_devices_in_verification(tmp_path):
    """What unknown functions answer, and what the driver's own variables hold before the first call."""
    design = made(tmp_path, MAPPED)
    result = verify(design.analysis, design, calls=12, measure=False)
    assert result.is_equal and not result.uncompared
    assert {check.function for check in result.functions if check.calls} == {
        "probe",
        "put",
        "stop",
        "console_init",
        "open",
    }


def test_a_mapped_device_is_of_a_group(tmp_path):
    with pytest.raises(Refused, match="device 'uart' is of 'Urat', which is no group"):
        made(tmp_path, MAPPED.replace("mapped_device(Uart, uart)", "mapped_device(Urat, uart)"))


def test_an_address_that_is_no_constant_is_told_of_mapped_devices(tmp_path):
    text = MAPPED.replace(
        "make_device(Uart, fixed, 0x40010000)", "extern uint32_t base; make_device(Uart, fixed, base)"
    )
    with pytest.raises(EdgewrightError, match="mapped_device"):
        made(tmp_path, text)


PWM = """
#include "edgewright_hal.h"
bfGroup Pwm {
    bit enable;
    uint8 LOCKED period;
    uint4 LOCKED divider;
    bit irq, invert;
    bit ro busy;
};
make_device(Pwm, pwm, 0x40000000);
void init(uint8_t period, uint8_t divider)
{
    pwm->enable = 0;
    pwm->invert = 1;
    pwm->period = period;
    pwm->divider = divider;
    pwm->enable = 1;
    pwm->irq = 1;
}
void change(uint8_t period) { pwm->enable = 0; pwm->period = period; pwm->enable = 1; }
void set_invert(int on) { pwm->invert = on != 0; }
void set_events(int on) { pwm->irq = on != 0; }
"""


class LockingPwm(Peripheral):
    """Counts writes of locked fields, of any value."""

    device = "pwm"
    broken = 0

    def write(self, name: str, value: int) -> None:
        LockingPwm.broken += name in ("period", "divider") and self.state["enable"] != 0
        super().write(name, value)


@pytest.mark.skipif(bool(missing_tools("rv32imc")), reason="needs a cross compiler and Unicorn")
@pytest.mark.parametrize(("locked", "is_kept"), [("while_zero(enable)", True), ("", False)])
def test_locked_fields_are_written_only_while_the_other_is_zero(tmp_path, locked, is_kept):
    """The driver keeps the rule; the smallest layout keeps it too only where it is told of it."""
    design = made(tmp_path, PWM.replace("LOCKED", locked), "map")
    LockingPwm.broken = 0
    result = verify(design.analysis, design, model=(LockingPwm,), calls=8, measure=False)
    assert result.is_equal
    assert (LockingPwm.broken == 0) == is_kept


def test_locked_fields_share_no_register_with_others(tmp_path):
    design = made(tmp_path, PWM.replace("LOCKED", "while_zero(enable)"), "map")
    for register in design.layout.spaces["Pwm"].registers:
        assert not register.slots & {"period", "divider"} or not register.slots & {"enable", "irq", "invert"}
    (tmp_path / "other.c").write_text(PWM.replace("LOCKED", ""))
    other = chosen_design(analyse([tmp_path / "other.c"]), goal=LayoutGoal(minimise="map"))
    known = design.analysis
    told = faults(known.description, known.spaces, other.layout, known.joints)
    assert any("period, which may be written only while another field is 0" in fault for fault in told)


def test_locked_fields_in_documents(tmp_path):
    documents = exports(made(tmp_path, PWM.replace("LOCKED", "while_zero(enable, busy)")), "driver")
    for text in documents.values():
        assert str(text).count("may be written only while Pwm::enable and Pwm::busy is 0") >= 2
    assert "the peripheral changes it too" not in str(documents["driver.rdl"])


@pytest.mark.parametrize(
    ("locked", "why"),
    [
        ("while_zero(enabel)", "did you mean 'enable'?"),
        ("while_zero(period)", "'Pwm::period' may change while 'Pwm::period' is 0, which is itself"),
        ("while_zero(Pwm)", "which is a group; name the field that enables the peripheral"),
        ("ro while_zero(enable)", "is ro and while_zero: it is never written"),
    ],
)
def test_locks_that_cannot_be(tmp_path, locked, why):
    assert why in refused(tmp_path, PWM.replace("LOCKED period", f"{locked} period").replace("LOCKED", ""))


GUARDED = """
#include "edgewright_hal.h"
bfGroup Clock {
    bit enable, halt;
    bit protection(privileged) unlock;
    uint4 protection(privileged) divider;
    bit protection(secure) trust;
    bit ro protection(privileged) ready;
};
make_device(Clock, rcc, 0x40020000);
void rcc_open(uint8_t divider) { rcc->unlock = 1; rcc->divider = divider; rcc->trust = 1; }
int rcc_start(void) { rcc->enable = 1; rcc->halt = 0; return rcc->ready; }
"""
SETS = ({"enable", "halt"}, {"unlock", "divider", "ready"}, {"trust"})


@pytest.mark.parametrize("mode", ["map", "accesses", "balanced"])
def test_fields_of_different_protection_share_no_register(tmp_path, mode):
    design = made(tmp_path, GUARDED, mode)
    registers = design.layout.spaces["Clock"].registers
    assert all(any(register.slots <= some for some in SETS) for register in registers)
    assert mode != "map" or len(registers) == 3
    plain = re.sub(r"protection\(\w+\) ", "", GUARDED)
    (tmp_path / "other.c").write_text(plain)
    other = chosen_design(analyse([tmp_path / "other.c"]), goal=LayoutGoal(minimise="map"))
    known = design.analysis
    told = faults(known.description, known.spaces, other.layout, known.joints)
    assert any("has fields of different protection" in fault for fault in told)


def test_protection_in_documents(tmp_path):
    """Each register has what its fields say, in the words of the format; the files are read back so."""
    design = made(tmp_path, GUARDED, "map")
    documents = exports(design, "driver")
    assert sorted(re.findall("<protection>(.)</protection>", str(documents["driver.svd"]))) == ["p", "s"]
    assert sorted(re.findall(r'protection = "(\w+)";', str(documents["driver.rdl"]))) == ["privileged", "secure"]
    assert str(documents["driver.svd"]).count("privileged access only") == 3
    told = [register.get("protection") for register in record(design, naive(design.analysis))["registers"]]
    assert sorted(map(str, told)) == ["None", "privileged", "secure"]
    (tmp_path / "driver.svd").write_text(str(documents["driver.svd"]))
    known = {r.name: r.protection for found in read_svd(tmp_path / "driver.svd") for r in registers_in(found.items)}
    assert sorted(map(str, known.values())) == ["None", "privileged", "secure"]
    pytest.importorskip("systemrdl", reason="systemrdl, which compiles SystemRDL, is not installed")
    (tmp_path / "driver.rdl").write_text(str(documents["driver.rdl"]))
    assert known == {r.name: r.protection for m in read_rdl(tmp_path / "driver.rdl") for r in registers_in(m.items)}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("(secure)", "(root)", "'Clock::trust' has protection(root); known are secure, non_secure, privileged"),
        ("(secure)", "(secure) protection(privileged)", "'Clock::trust' has protection twice"),
        ("(secure)", "(secure) together(enable)", "and differ in protection; a register has one"),
    ],
)
def test_protection_that_cannot_be(tmp_path, old, new, why):
    assert why in refused(tmp_path, GUARDED.replace(old, new))


def test_a_ring_that_is_allocated_at_run_time_in_a_driver_of_two_files(tmp_path):
    """The header is read twice, and its device is one."""
    head = RING.partition("make_device")[0].replace("STRIDE", "stride(16)") + "mapped_device(Ring, ring);\n"
    (tmp_path / "ring.h").write_text(f"#pragma once\n{head}in_memory(ring);\n")
    (tmp_path / "a.c").write_text("""#include "ring.h"
void *allocate(uint32_t bytes);
bfGroup Ring *ring_new(void) { bfGroup Ring *r = ring_at(allocate(80)); if (r) r->go = 1; return r; }
""")
    (tmp_path / "b.c").write_text(
        '#include "ring.h"\nvoid stop(bfGroup Ring *r) { r->entries[0].own = 0; r->go = 0; }\n'
    )
    design = chosen_design(analyse([tmp_path / "a.c", tmp_path / "b.c"]))
    assert [(d.name, d.is_mapped, d.in_memory) for d in design.analysis.description.devices] == [("ring", True, True)]
    files = generate(design, "a")
    assert files["a_hal.h"].count("hal_mapped_device(Ring, ring);") == 1 and "mapped" not in files["ring.h"]
    assert "ring where it is mapped" in hal_page(design, naive(design.analysis), name="a")
