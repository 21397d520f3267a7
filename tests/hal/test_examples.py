"""The example drivers: plain C for compilers, the whole language between them, the same on the prototype; Halstead."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

import edgewright
import hal_five
import hal_fixed
from edgewright.hal import design_flow, examples
from edgewright.hal.design import Analysis, Design
from edgewright.hal.generate import generate
from edgewright.hal.language.description import Mode
from edgewright.hal.layout.layout import RegisterAt, elaborate
from edgewright.hal.layout.paper import lay_out_paper
from edgewright.hal.verify import load_model, measure, verify
from edgewright.hal.verify.peripheral import Peripheral
from tests.hal.halstead import halstead
from tests.helpers.tools import command

FOLDER = Path(examples.__file__).parent
INCLUDE = Path(edgewright.__file__).parent / "hal" / "include"
FIVE = ("i2c", "rtc", "adc", "can", "pwm")
NAMES = ("gpio", "spi", "uart", "timer", "dma", *FIVE)
CONVENTIONAL_ACCESSES = 101  # of the workload: every bit of a pad is a read-modify-write


@cache
def analysed(*names: str) -> Analysis:
    return design_flow.analyse([FOLDER / f"{name}.c" for name in names])


def paper_layout(analysis: Analysis) -> Design:
    layout = lay_out_paper(analysis.description, analysis.spaces, analysis.joints)
    return design_flow.design(analysis, layout)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_take_the_examples_as_they_are(name: str, compiler: str, tmp_path: Path) -> None:
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{INCLUDE}"]
    subprocess.run([*command(compiler), *flags, "-c", FOLDER / f"{name}.c", "-o", tmp_path / "driver.o"], check=True)


def test_every_word_of_the_language_is_used_somewhere() -> None:
    descriptions = [analysed(name).description for name in NAMES if name != "spi"]
    descriptions.append(analysed("gpio", "spi").description)
    owned = [(group, field) for found in descriptions for group in found.groups.values() for field in group.fields]
    fields = [field for _, field in owned]

    def some(what: str) -> bool:
        return any(bool(getattr(field, what)) for field in fields)

    words = (
        "rse",
        "wse",
        "w1c",
        "w1s",
        "clear_on_read",
        "fifo",
        "by_hardware",
        "reset",
        "shared_with_isr",
        "split",
        "together",
        "gathers",
    )
    assert [word for word in words if not some(word)] == []
    assert {field.mode for field in fields} == set(Mode)
    assert some("pinned")
    assert any(device.bus.narrowest == 8 for found in descriptions for device in found.devices)
    assert any(target.group != group.name for group, field in owned for target in (*field.rse, *field.wse))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_does_the_same_with_its_layout(name: str) -> None:
    pytest.importorskip("unicorn")
    analysis = analysed("gpio", "spi") if name == "spi" else analysed(name)
    found = verify(analysis, paper_layout(analysis), model=load_model(FOLDER / f"{name}.py"), calls=3, measure=False)
    assert found.differences == ()
    assert found.calls > len(analysis.functions)


def workload(
    files: Mapping[str, str], analysis: Analysis, registers: Sequence[RegisterAt]
) -> tuple[tuple[int, ...], int]:
    """What the workload's functions return, and how many bus accesses they make."""
    models: dict[str, type[Peripheral]] = {}
    for name in ("gpio", "spi"):
        (models[name],) = load_model(FOLDER / f"{name}.py")
    calls: list[tuple[str, tuple[int, ...]]] = [("workload_gpio", ()), ("workload_spi", ())]
    found = measure(files, analysis.description, registers, calls, models=models, seed=5)
    return found.results, found.accesses


@pytest.mark.slow
def test_five_ordinary_peripherals_gain_and_do_the_same() -> None:
    pytest.importorskip("unicorn")
    pairs = [hal_five.measured(name, "rv32imc") for name in FIVE]
    for pair in pairs:
        assert pair.conventional.results == pair.ours.results and len(set(pair.ours.results)) > 1, pair.name
    for what in ("accesses", "effort", "map_bytes"):
        fixed, ours = hal_five.summed(pairs, "rv32imc", what)
        assert ours <= hal_five.BARS[what] * fixed, what


def test_the_conventional_drivers_are_the_same_drivers() -> None:
    pytest.importorskip("unicorn")
    analysis = analysed("gpio", "spi")
    design = paper_layout(analysis)
    ours = hal_fixed.headers() | generate(design, "drivers")
    registers = elaborate(analysis.description, analysis.spaces, design.layout)
    results, accesses = workload(ours, analysis, registers)
    fixed = hal_fixed.registers(analysis.description)
    for files in (hal_fixed.clean(), hal_fixed.clean(shared=True), hal_fixed.with_volatile_locals()):
        assert workload(files, analysis, fixed) == (results, CONVENTIONAL_ACCESSES)
    assert "volatile uint32_t count" in hal_fixed.with_volatile_locals()["spi.c"]
    assert accesses <= 0.64 * CONVENTIONAL_ACCESSES
    assert results[0] == 0b1111 & (5 ^ 0x5A)  # the levels of the pads


def test_what_counts_for_halstead() -> None:
    counted = halstead(
        """
        #include <stdint.h> /* not counted */
        #ifndef GUARD
        #define GUARD
        #define WIDTH (4u + 1u)
        static int area(int height) { // neither
            if (height > 0)
                return height * WIDTH;
            return 0;
        }
        #endif
        """
    )
    # #define ( + static ( { if > return * ; return ;
    assert counted.all_operators == 13
    assert counted.operators == 10
    # WIDTH 4u 1u int area int height height 0 height WIDTH 0
    assert counted.all_operands == 12
    assert counted.operands == 7


def test_halstead_effort_is_difficulty_times_volume() -> None:
    counted = halstead("a = b + b;")
    assert (counted.operators, counted.operands, counted.all_operators, counted.all_operands) == (3, 2, 3, 3)
    assert counted.difficulty == pytest.approx(3 / 2 * 3 / 2)
    assert counted.volume == pytest.approx(6 * 2.321928)
    assert counted.effort == pytest.approx(counted.difficulty * counted.volume)


def test_attributes_are_operators_and_their_parentheses_are_theirs() -> None:
    counted = halstead("bit ro rse(other) ready;")
    # ro rse ; against bit other ready
    assert (counted.all_operators, counted.all_operands) == (3, 3)
    assert halstead("pads[pin];") == halstead("pads[pad];")


def test_writing_in_groups_takes_less_effort() -> None:
    clean = hal_fixed.clean()
    fixed = sum(
        halstead(clean["register.h"] + clean[f"{name}_registers.h"] + clean[f"{name}.c"]).effort
        for name in ("gpio", "spi")
    )
    ours = sum(halstead((FOLDER / f"{name}.c").read_text()).effort for name in ("gpio", "spi"))
    assert ours <= 0.61 * fixed
