"""The virtual prototype: that it runs code as the processors do, finds planted faults, and reports nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from edgewright.board.toolchain import toolchain
from edgewright.errors import EdgewrightError, InputError
from edgewright.hal.design import Analysis, Design
from edgewright.hal.design_flow import analyse, design, naive
from edgewright.hal.generate import generate
from edgewright.hal.generate.calls import Marks
from edgewright.hal.language.description import Bus as BusWidth
from edgewright.hal.language.description import Description, Device, Field, Group, Mode, Place
from edgewright.hal.layout.cost import LayoutGoal
from edgewright.hal.layout.layout import FieldAt, Layout, Piece, Register, RegisterAt, SpaceLayout
from edgewright.hal.layout.optimal import lay_out_optimal
from edgewright.hal.layout.packing import side_by_side, with_spare_bits
from edgewright.hal.layout.paper import lay_out_paper
from edgewright.hal.layout_choice import chosen_design
from edgewright.hal.merge import Merging
from edgewright.hal.verify import Verification, code_sizes_of, load_model, measure, verify
from edgewright.hal.verify.abi import Type, places_of
from edgewright.hal.verify.build import build, free_window, link, target_named
from edgewright.hal.verify.machine import Machine
from edgewright.hal.verify.prototype import Variant
from edgewright.hal.verify.signatures import signatures_of
from edgewright.hal.verify.verification import Fault, StopReason
from edgewright.hal.verify.verifier import compare_variants, variant_of

pytest.importorskip("unicorn")
TARGETS = ("rv32imc", "cortex-m0plus", "cortex-m4")

GROUPS = """
#include "edgewright_hal.h"
bfGroup Port {
    uint8 mode;
    uint4 level;
    uint16 ro count;
    bit ro ready;
    uint8 clear_on_read causes;
    bit wse(count) go;
    bit wse(ready) stop;
    uint8 fifo data;
    bit w1c done;
};
make_device(Port, port, 0x40000000);
int pause(uint32_t ticks);
"""
DRIVER = """
void start(uint8_t mode, uint8_t level) { port->mode = mode; port->level = level; port->go = 1; }
void both(void) { port->go = 1; port->stop = 0; }
uint32_t twice(void) { uint32_t a = port->count; uint32_t b = port->count; return a + 256u * b; }
uint32_t look(uint8_t if_zero) { uint32_t v = 0; if (!if_zero) v = port->causes; return v; }
uint32_t poll(void) { uint32_t n = 0; while (!port->ready) n++; return n + 100u * port->count; }
int wait(uint8_t mode) { port->mode = mode; return pause(mode + 1u); }
uint8_t take(void) { port->data = 3; return port->data; }
int ask(uint8_t mode) { return pause(mode + 3u); }
void clear(void) { port->done = 1; }
void update(uint8_t by) { port->level += by; }
"""


def _analysis(folder: Path, text: str, groups: str = GROUPS, name: str = "port.c") -> Analysis:
    path = folder / name
    path.write_text(groups + text)
    return analyse([path])


def _unmerged(analysis: Analysis, layout: Layout) -> Design:
    return Design(analysis, layout, {function.name: Merging(()) for function in analysis.functions})


def _packed(analysis: Analysis, *registers: tuple[str, ...]) -> Layout:
    """A layout by hand: slots side by side in 32-bit registers, in this order."""
    (space,) = analysis.spaces.values()
    made = []
    for number, names in enumerate(registers):
        pieces, bit = [], 0
        for name in names:
            bits = space.slot(name).field.bits
            pieces.append(Piece(name, bit, bits))
            bit += bits
        made.append(Register(4 * number, 32, tuple(pieces)))
    return Layout({space.name: SpaceLayout(space.name, tuple(made), (), 4 * len(made))}, "hand")


SAFE = (("mode", "level"), ("count", "ready"), ("causes",), ("go",), ("stop",), ("data",), ("done",))


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> tuple[Analysis, Variant]:
    """The driver as it is meant, each field in a register of its own."""
    analysis = _analysis(tmp_path_factory.mktemp("right"), DRIVER)
    return analysis, variant_of(naive(analysis), "rv32imc", measure=False)


def _against(right: tuple[Analysis, Variant], other: Design) -> Verification:
    return compare_variants(right[0], right[1], variant_of(other, "rv32imc", measure=False), calls=24)


# Faults planted into the driver: function, what it says, what it should not say, what is found.
PLANTED = {
    "both": (
        "port->go = 1; port->stop = 0;",
        "port->stop = 0; port->go = 1;",
        "event 1 is a write of 0 to port.stop instead of a write of 1 to port.go",
    ),
    "start": (
        "port->level = level; port->go = 1;",
        "port->go = 1; port->level = level;",
        "(at event 1, write of 1 to port.go: port.level holds the reset value|write of 1 to port.go comes before)",
    ),
    "wait": (
        "port->mode = mode; return pause(mode + 1u);",
        "int r = pause(mode + 1u); port->mode = mode; return r;",
        r"at event 1, call of pause\(.*port.mode holds",
    ),
    "ask": ("pause(mode + 3u)", "pause(mode + 2u)", r"event 1 is a call of pause\("),
    "look": (
        "if (!if_zero) v = port->causes;",
        "v = port->causes; if (if_zero) v = 0;",
        "event 1 is too many: read of port.causes",
    ),
    "twice": ("uint32_t b = port->count;", "uint32_t b = a;", "(returns|leaves) "),
    "clear": ("port->done = 1;", "(void)port->count; port->done = 1;", "leaves port.count "),
}


@pytest.fixture(scope="module")
def found(right: tuple[Analysis, Variant], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is found in the driver with all the faults, by function."""
    text = DRIVER
    for before, after, _ in PLANTED.values():
        assert text.count(before) == 1
        text = text.replace(before, after)
    analysis = _analysis(tmp_path_factory.mktemp("planted"), text)
    result = _against(right, design(analysis, _packed(analysis, *SAFE)))
    return {difference.function: difference.what for difference in result.differences}


@pytest.mark.parametrize("function", PLANTED)
def test_planted_faults_are_found(found: dict[str, str], function: str) -> None:
    assert re.match(PLANTED[function][2], found[function])


def test_functions_without_a_fault_are_equal(found: dict[str, str]) -> None:
    assert set(found) == set(PLANTED)


@pytest.mark.parametrize("target", TARGETS[:2])
def test_a_right_layout_has_no_difference_and_fewer_accesses(tmp_path: Path, target: str) -> None:
    analysis = _analysis(tmp_path, DRIVER)
    result = verify(analysis, design(analysis, _packed(analysis, *SAFE)), target=target, calls=8)
    assert [str(difference) for difference in result.differences] == []
    assert {checked.function for checked in result.functions} == {function.name for function in analysis.functions}
    assert all(checked.calls or checked.unfinished for checked in result.functions)
    start = next(checked for checked in result.functions if checked.function == "start")
    assert (start.naive.accesses / start.calls, start.optimised.accesses / start.calls) == (3, 2)
    assert result.optimised_code_bytes > 0 and start.naive.instructions > 0


@pytest.mark.parametrize("target", TARGETS[:2])
def test_standard_headers_need_no_library_beside_the_compiler(tmp_path: Path, target: str) -> None:
    body = """
#include <assert.h>
#include <limits.h>
#include <string.h>
void fill(uint8_t mode, uint8_t level)
{
    uint8_t both[2];
    memset(both, mode, sizeof both);
    assert(level <= UCHAR_MAX);
    port->mode = both[1];
    port->level = level;
}
"""
    analysis = _analysis(tmp_path, body)
    result = verify(analysis, naive(analysis), target=target, calls=4)
    assert result.is_equal and [checked.function for checked in result.functions] == ["fill"]


def test_a_neighbour_that_is_read_along_is_no_difference(right: tuple[Analysis, Variant]) -> None:
    """`poll` reads ready again and again, with count beside it; the count that it then asks for is the first."""
    analysis = right[0]
    layout = _packed(analysis, *SAFE)
    found = _against(right, _unmerged(analysis, layout))
    assert found.is_equal and found.calls > 200


@pytest.mark.parametrize(
    ("attribute", "neighbour", "story"),
    [("wse(count) go", "go", "write of 0 to port.go"), ("w1c done", "done", "leaves port.done")],
)
def test_read_modify_write_beside_a_field_that_acts(
    right: tuple[Analysis, Variant], tmp_path: Path, attribute: str, neighbour: str, story: str
) -> None:
    """Code made by someone who does not know the attribute."""
    assert attribute in GROUPS
    lied = _analysis(tmp_path, DRIVER, GROUPS.replace(attribute, neighbour))
    rest = [tuple(name for name in names if name != neighbour) for names in SAFE[1:]]
    layout = _packed(lied, ("mode", "level", neighbour), *filter(None, rest))
    made = variant_of(_unmerged(lied, layout), "rv32imc", measure=False)
    truth = replace(made, description=right[0].description, spaces=right[0].spaces)
    differences = compare_variants(right[0], right[1], truth, calls=24).differences
    assert any(story in difference.what for difference in differences if difference.function != neighbour)


def test_a_read_beside_a_field_whose_reading_acts(right: tuple[Analysis, Variant]) -> None:
    analysis = right[0]
    layout = _packed(analysis, ("mode", "level"), ("count", "ready", "causes"), *SAFE[3:])
    found = _against(right, _unmerged(analysis, layout))
    assert any("too many: read of port.causes" in difference.what for difference in found.differences)


def test_a_missing_mask(right: tuple[Analysis, Variant], monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = right[0]
    layout = _packed(analysis, ("level", "mode"), *SAFE[1:])

    def without_mask(design: Design, name: str, marks: Marks) -> dict[str, str]:
        files = generate(design, name, marks)
        broken = {file: text.replace("0xfu", "0x1fu") for file, text in files.items()}
        assert broken != files
        return broken

    monkeypatch.setattr("edgewright.hal.verify.verifier.generate", without_mask)
    found = _against(right, design(analysis, layout))
    assert any("port.mode" in difference.what for difference in found.differences)


def test_code_that_differs_once_inlined_is_found(right: tuple[Analysis, Variant], tmp_path: Path) -> None:
    analysis = right[0]
    other = _analysis(tmp_path, DRIVER.replace("port->done = 1;", "port->done = 1; port->done = 1;"))
    broken = replace(right[1], inlined=variant_of(naive(other), "rv32imc", measure=False).outlined)
    found = compare_variants(analysis, right[1], broken, calls=4)
    assert [d.function for d in found.differences] == ["clear"] and "once functions are inlined" in str(found)


INDEXED = """
#include "edgewright_hal.h"
bfGroup Pad { bit dir; bit ro in; uint3 pull; };
bfGroup Gpio { bfGroup Pad pads[8]; uint32 ro seen; uint8 totals[4]; };
make_device(Gpio, gpio, 0x1a101000);
extern void notify(bfGroup Pad *pad, uint8_t what);
uint8_t level(uint8_t n) { return gpio->pads[n].in; }
void set(bfGroup Pad *pad, uint8_t dir) { pad->dir = dir; pad->pull = 2; notify(pad, pad->in); }
bfGroup Pad *best(uint8_t n) { return &gpio->pads[n & 7u]; }
uint32_t sum(uint32_t n) { uint32_t s = 0; for (uint32_t i = 0; i < n; i++) s += gpio->totals[i]; return s; }
uint32_t each(uint8_t *to, uint32_t n) { for (uint32_t i = 0; i < n; i++) to[i] = gpio->pads[i].in; return n; }
uint32_t ask(uint32_t (*how)(uint8_t)) { return how(gpio->pads[2].in) + gpio->seen; }
void forever(void) { while (gpio->totals[0] != 1) { } }
struct handle { uint8_t last; bfGroup Pad *pad; const uint8_t *table; void (*done)(uint8_t); };
uint8_t use(struct handle *h, uint8_t n) { h->last = h->pad->in; h->pad->pull = h->table[n]; h->done(n); return n; }
bfGroup Pad *chosen;
void choose(uint8_t n) { chosen = &gpio->pads[n & 7u]; }
float ratio(float x) { return x; }
"""


def test_indices_stay_in_range_and_pointers_are_compared_by_what_they_point_to(tmp_path: Path) -> None:
    analysis = _analysis(tmp_path, INDEXED, groups="")
    layout = lay_out_paper(analysis.description, analysis.spaces, analysis.joints)
    result = verify(analysis, design(analysis, layout), calls=16)
    assert [str(difference) for difference in result.differences] == []
    by_name = {checked.function: checked for checked in result.functions}
    assert by_name["forever"].unfinished and not by_name["forever"].calls
    assert by_name["level"].calls >= 16 and not by_name["level"].left_out
    assert by_name["sum"].calls and "is given index 4 of 4" in by_name["sum"].left_out
    assert by_name["use"].calls and by_name["choose"].calls and by_name["ask"].calls
    unchecked = [checked for checked in result.functions if not checked.calls and not checked.unfinished]
    assert [checked.left_out for checked in unchecked] == ["not called: it has a parameter or result of type 'float'"]


POINTING = """
#include "edgewright_hal.h"
bfGroup Mask { uint7 level; bit on; uint5 width; uint3 ro at; };
make_device(Mask, mask, 0x1a101000);
struct state { const uint16_t *table; void (*then)(uint32_t); const char *name; uint32_t count; } state;
static const uint16_t low[4] = {1, 2, 3, 4}, high[4] = {10, 20, 30, 40};
static void less(uint32_t by) { mask->level = by; mask->on = 0; mask->width = by; }
static void more(uint32_t by) { mask->level = by + 1u; mask->on = 1; mask->width = 0; }
static const char *word(uint32_t n) { return n & 1u ? "odd" : "even"; }
static const uint16_t *table(uint32_t n) { return n & 2u ? low : high + 1; }
void choose(uint32_t n) { state.table = table(n); state.then = n & 4u ? less : more; state.name = word(n); }
void step(uint32_t n) { if (state.then) { state.then(n); state.count += mask->at + state.table[n & 1u]; } }
"""


@pytest.mark.parametrize("zig", [False, True], ids=["gcc", "zig"])
def test_what_the_driver_points_to_lies_at_one_address_in_every_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zig: bool
) -> None:
    """Functions and variables keep their places though the code has another size: an address is a value like others."""
    _with_compiler(monkeypatch, zig)
    analysis = _analysis(tmp_path, POINTING, groups="")
    other = _analysis(tmp_path, POINTING.replace("n & 4u ? less : more", "n & 4u ? more : less"), groups="")
    designs = [design(one, lay_out_paper(one.description, one.spaces, one.joints)) for one in (analysis, other)]
    plain, optimised, wrong = (variant_of(one, "rv32imc", measure=False) for one in (naive(analysis), *designs))
    images = link([plain.outlined, optimised.outlined], 0x1A40_0000)
    starts = [{name: at for at, _, name in one.elf.functions} for one in images]
    assert starts[0]["more"] == starts[1]["more"] and images[0].code["less"] != images[1].code["less"]
    assert compare_variants(analysis, plain, optimised, calls=16).is_equal
    differences = compare_variants(analysis, plain, wrong, calls=16).differences
    assert differences


# Zig takes long: quickly, one target of each architecture.
COMPILERS = [
    pytest.param(target, zig, id=f"{target}-{'zig' if zig else 'gcc'}", marks=[pytest.mark.slow] * (zig and slow))
    for target, slow in (("rv32imc", False), ("cortex-m0plus", True), ("cortex-m4", False))
    for zig in (False, True)
]


def _with_compiler(monkeypatch: pytest.MonkeyPatch, zig: bool) -> None:
    """The drivers' compiler: GCC or Zig, whichever the machine would prefer; a skip where it is not there."""
    try:
        toolchain(target_named("rv32imc"), zig)
        toolchain(target_named("cortex-m0plus"), zig)
    except EdgewrightError as error:
        pytest.skip(str(error))
    monkeypatch.setattr("edgewright.hal.verify.build.toolchain", partial(toolchain, zig=zig))


@pytest.mark.parametrize(("target", "zig"), COMPILERS)
def test_arguments_go_where_the_processor_expects_them(target: str, monkeypatch: pytest.MonkeyPatch, zig: bool) -> None:
    """64-bit values, narrow ones, and more than registers hold."""
    _with_compiler(monkeypatch, zig)
    text = """
    #include <stdint.h>
    static int32_t count;
    uint64_t f(uint8_t a, uint64_t b, int8_t c, uint64_t d, uint32_t e, int32_t g, uint32_t h, uint64_t i)
    { count++; return a + 2 * b + (uint64_t)(c * 3) + d * 5 + e * 7u + (uint64_t)(g * 11) + h / 3u + i * 17 + count; }
    """
    built = build({"f.c": text}, target_named(target), free_window(()))
    machine = Machine(built, frozenset(), {})
    types = [Type(8), Type(64), Type(8, True), Type(64), Type(32), Type(32, True), Type(32), Type(64)]
    values = [0x1FF, 1 << 40, -2, 1 << 33, 5, -6, 700, 1 << 35]
    expected = 255 + 2 * values[1] - 6 + 5 * values[3] + 35 - 66 + 233 + 17 * values[7]
    assert machine.call("f", types, values) == expected + 1
    assert machine.call("f", types, values) == expected + 2
    machine.reset()
    assert machine.call("f", types, values) == expected + 1


def test_wide_arguments_are_aligned_where_the_abi_says_so() -> None:
    types = [Type(32), Type(64), Type(32), Type(64)]
    assert places_of(target_named("cortex-m4").architecture, types) == [(0,), (2, 3), (4,), (6, 7)]
    assert places_of(target_named("rv32imc").architecture, types) == [(0,), (1, 2), (3,), (4, 5)]


AT = Place("x.c", 1)
MODE, STATE = Field("mode", 4, AT), Field("state", 2, AT, mode=Mode.RO)
BY_HAND = Description(
    {"Uart": Group("Uart", (MODE, STATE), AT)}, (Device("uart", "Uart", 0x5000_0000, AT, BusWidth(32, 32)),)
)
REGISTERS = (
    RegisterAt("uart", 0, 32, (FieldAt("mode", "Uart", MODE, 4, 4),)),
    RegisterAt("uart", 4, 32, (FieldAt("state", "Uart", STATE, 0, 2),)),
)


def _measured(body: str, *calls: tuple[str, tuple[int, ...]]) -> object:
    text = "#include <stdint.h>\n#define REG(o) (*(volatile uint32_t *)(0x50000000u + (o)))\n" + body
    return measure({"conventional.c": text}, BY_HAND, REGISTERS, calls)


def test_a_hand_written_driver_is_measured() -> None:
    body = "uint32_t set(uint32_t m) { REG(0) = (REG(0) & ~0xf0u) | (m & 15u) << 4; return REG(0) >> 4; }"
    measured = measure(
        {"c.c": "#include <stdint.h>\n#define REG(o) (*(volatile uint32_t *)(0x50000000u + (o)))\n" + body},
        BY_HAND,
        REGISTERS,
        [("set", (7,)), ("set", (9,))],
    )
    assert (measured.results, measured.accesses) == ((7, 9), 6)
    assert 8 <= measured.instructions // 2 <= 20 and measured.code_bytes == measured.code["set"] > 16


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("uint32_t f(void) { return REG(8); }", "access to no register"),
        ("uint32_t f(void) { return *(volatile uint8_t *)0x50000000u; }", "read of 8 bits at uart"),
        ("void f(void) { for (;;) REG(0) = 1; }", "no end within"),
        ("uint32_t f(void) { return *(volatile uint32_t *)0x70000000u; }", "outside all memory"),
        ("uint32_t g(void) { return 1; }", "no function 'f'; it has g"),
    ],
)
def test_accesses_that_no_driver_may_make(body: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _measured(body, ("f", ()))


def test_a_fault_ends_the_call_and_the_machine_goes_on() -> None:
    built = build({"f.c": "int f(int x) { while (x) { } return 5; }"}, target_named("rv32imc"), free_window(()))
    machine = Machine(built, frozenset(), {})
    with pytest.raises(Fault) as caught:
        machine.call("f", [Type()], [1])
    assert caught.value.reason is StopReason.ENDLESS
    assert machine.call("f", [Type()], [0]) == 5


def test_models_of_ones_own(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(
        "from edgewright.hal.verify import Peripheral\n"
        "class Counting(Peripheral):\n"
        "    device = 'port'\n"
        "    def read(self, name):\n"
        "        value = super().read(name)\n"
        "        return 1 if name == 'ready' else 5 if name == 'count' else value\n"
    )
    text = "int check(void) { while (!port->ready) { } return port->count == 5 ? 1 : pause(1); }"
    analysis = _analysis(tmp_path, text)
    result = verify(analysis, naive(analysis), model=load_model(model), calls=8)
    (checked,) = result.functions
    assert result.is_equal and checked.naive.accesses == 2 * checked.calls


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such file"),
        ("x = 1", "has no model; derive a class"),
        ("import nowhere_at_all", "cannot be loaded: ModuleNotFoundError"),
        ("class (", "cannot be loaded: SyntaxError"),
    ],
)
def test_files_that_are_no_models(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "model.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_model(path)


def test_a_model_of_a_device_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("from edgewright.hal.verify import Peripheral\nclass Wrong(Peripheral):\n    device = 'uart9'\n")
    analysis = _analysis(tmp_path, DRIVER)
    with pytest.raises(InputError, match="model 'Wrong' is for device 'uart9', which the driver lacks; it has port"):
        verify(analysis, naive(analysis), model=load_model(path))


def test_targets_that_the_prototype_has_not() -> None:
    with pytest.raises(InputError, match=r"has no target 'host'; it has .*rv32imc"):
        target_named("host")


FLASH = """
#include "edgewright_hal.h"
bfGroup Flash { uint8 command; bit data; bit write; uint2 lines; uint4 dummies; bit hw go; uint2 chip; uint5 speed; };
make_device(Flash, flash, 0x40013000);
static void start(uint8_t command, int data, int write, uint8_t lines, uint8_t dummies)
{
    flash->command = command;
    flash->data = data;
    flash->write = write;
    flash->lines = lines;
    flash->dummies = dummies;
    flash->go = 1;
}
void flash_status(void) { start(0x05, 1, 0, 0, 0); }
void flash_enable(void) { start(0x06, 0, 1, 0, 0); }
void flash_read(void) { start(0x6b, 1, 0, 2, 8); }
void flash_tune(uint8_t chip, uint8_t speed)
{
    flash->chip = chip;
    flash->speed = speed;
}
"""


def test_what_a_compiler_makes_smaller_is_taken_and_does_the_same(tmp_path: Path) -> None:
    """A function that is called with constants may go to its callers; numbers that may be too large get free bits."""
    (tmp_path / "flash.c").write_text(FLASH)
    analysis = analyse([tmp_path / "flash.c"])
    sizes = partial(code_sizes_of, target="rv32imc")
    made = chosen_design(analysis, measure=sizes)
    plain, inlined = (sizes(replace(made, inlined=names)) for names in (frozenset(), frozenset({"start"})))
    assert plain and inlined
    assert bool(made.inlined) == (sum(inlined.values()) < sum(plain.values()))
    spaces = with_spare_bits(analysis.spaces, {("Flash", "chip"), ("Flash", "speed"), ("Flash", "lines")})
    layout = side_by_side(lay_out_optimal(analysis.description, spaces, analysis.joints, LayoutGoal()), spaces)
    (register,) = layout.spaces["Flash"].holding("chip")
    assert [(piece.slot, piece.bit) for piece in register.pieces] == [("chip", 0), ("speed", 8)]
    other = replace(design(analysis, layout), inlined=frozenset({"start"}))
    text = generate(other, "flash")["flash.c"]
    assert "static EDGEWRIGHT_INLINE void start(" in text and "EDGEWRIGHT_INLINE void flash" not in text
    assert verify(analysis, other, calls=4).is_equal


def test_a_function_whose_attributes_say_where_it_is_stays_there(tmp_path: Path) -> None:
    (tmp_path / "flash.c").write_text(FLASH.replace("static void start", "static __attribute__((noinline)) void start"))
    analysis = analyse([tmp_path / "flash.c"])
    assert not chosen_design(analysis, measure=partial(code_sizes_of, target="rv32imc")).inlined


def test_flags_in_what_pointers_lead_to_are_truth_values(tmp_path: Path) -> None:
    """Any other value of a `bool` means what the compiler likes: 3, not 1, and two designs may differ by that."""
    (tmp_path / "f.c").write_text(
        '#include "edgewright_hal.h"\n#include <stdbool.h>\n'
        "bfGroup D { bit up; bit down; uint4 pace; };\nmake_device(D, d, 0x40000000);\n"
        "struct Inner { bool flags[3]; };\nstruct Move { uint32_t pace; bool is_up; struct Inner inner, *other; };\n"
        "void f(const struct Move *m, const bool *more, int n)\n{\n"
        "    d->up = m->is_up;\n    d->down = !m->is_up;\n"
        "    d->pace = m->inner.flags[1] + m->other->flags[2] + more[n & 3];\n}\n"
    )
    analysis = analyse([tmp_path / "f.c"])
    known = signatures_of(analysis.source, analysis.description)["f"].parameters
    assert known[0][1].flags == (4, 5, 6, 7) and known[1][1].flags == (0,)
    assert [inner.flags for _, inner in known[0][1].inside] == [(0, 1, 2)]
    assert verify(analysis, chosen_design(analysis), calls=12).is_equal
