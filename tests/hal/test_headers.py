"""Register maps from C headers: structs as CMSIS has them, and macros with offsets."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from edgewright.cli import main
from edgewright.errors import InputError
from edgewright.hal.importing import imported
from edgewright.hal.layout.layout import elaborate
from tests.hal.test_importing import design_of

STRUCTS = """
#ifndef TIM_H
#define TIM_H
#include "core_cm4.h"
#include <stdint.h>
typedef struct
{
  __IO uint32_t CR1;         /*!< TIM control register 1, Address offset: 0x00 */
  __I  uint32_t SR;
  uint32_t RESERVED0[2];
  __O  uint32_t EGR;
  __IO uint32_t CCR[4];
  union { __IO uint32_t DR; __IO uint8_t DR8; };
  struct { __IO uint32_t MODE; __IO uint16_t COUNT; uint16_t pad; } CH[3];
} TIM_TypeDef;
#define PERIPH_BASE 0x40000000UL
#define APB1PERIPH_BASE PERIPH_BASE
#define TIM2_BASE (APB1PERIPH_BASE + 0x0000UL)
#define TIM3_BASE (APB1PERIPH_BASE + 0x0400UL)
#define TIM2 ((TIM_TypeDef *) TIM2_BASE)
#define TIM3 ((TIM_TypeDef *) TIM3_BASE)
#define TIM_CR1_CEN_Pos (0U)
#define TIM_CR1_CEN_Msk (0x1UL << TIM_CR1_CEN_Pos)
#define TIM_CR1_CEN TIM_CR1_CEN_Msk
#define TIM_CR1_CMS_Pos (5U)
#define TIM_CR1_CMS_Msk (0x3UL << TIM_CR1_CMS_Pos)
#define TIM_CR1_CMS_0 (0x1UL << TIM_CR1_CMS_Pos)
#define TIM_CR1_CMS_EDGE (0UL)
#define TIM_CR1_CMS_CENTER (1UL)
#define TIM_SR_UIF_Pos (0U)
#define TIM_SR_UIF_Msk (0x1UL << TIM_SR_UIF_Pos)
#define TIM_CCR_VALUE_Pos 0
#define TIM_CCR_VALUE_Msk 0xFFFFUL
#define TIM_CH_MODE_SEL_Pos 4
#define TIM_CH_MODE_SEL_Msk (7u << 4)
#define IS_TIM(x) ((x) == TIM2)
#endif
"""
OFFSETS = """
#define UART_PARAM_NUM_ALERTS 1
#define UART0_BASE_ADDR 0x40000000u
#define UART_INTR_STATE_REG_OFFSET 0x0
#define UART_INTR_STATE_TX_WATERMARK_BIT 0
#define UART_INTR_STATE_RX_WATERMARK_BIT 1
#define UART_CTRL_REG_OFFSET 0x10
#define UART_CTRL_TX_BIT 0
#define UART_CTRL_NCO_MASK 0xffffu
#define UART_CTRL_NCO_OFFSET 16
#define UART_RXBLVL_REG_OFFSET 0x14
#define UART_DATA_0_REG_OFFSET 0x20
#define UART_DATA_1_REG_OFFSET 0x24
#define UART_DATA_2_REG_OFFSET 0x28
"""


def maps(text, tmp_path, *wanted):
    (tmp_path / "chip.h").write_text(text)
    return imported(tmp_path / "chip.h", "header", wanted)


def places(found, tmp_path):
    """Device, offset, width, and bits of every field by name, as the lock lays a driver out."""
    design = design_of(found, tmp_path)
    spaces = design.analysis.spaces
    return {
        (at.device, at.offset, at.width, field.name, field.bit, field.size)
        for at in elaborate(design.analysis.description, spaces, design.layout)
        for field in at.fields
    }


def test_a_struct_lies_as_a_compiler_lays_it_out(tmp_path):
    (found,) = maps(STRUCTS, tmp_path)
    assert found.devices == (("TIM2", 0x40000000), ("TIM3", 0x40000400))
    assert found.left_out == ("TIM.DR8 lies where DR is, at 0x24",)
    expected = {
        (0, 32, "CR1.CEN", 0, 1),
        (0, 32, "CR1.CMS", 5, 2),
        (4, 32, "SR.UIF", 0, 1),
        (0x10, 32, "EGR", 0, 32),
    }
    expected |= {(0x14 + 4 * n, 32, f"CCR[{n}].VALUE", 0, 16) for n in range(4)} | {(0x24, 32, "DR", 0, 32)}
    expected |= {(0x28 + 8 * n, 32, f"CH[{n}].MODE.SEL", 4, 3) for n in range(3)}
    expected |= {(0x2C + 8 * n, 16, f"CH[{n}].COUNT", 0, 16) for n in range(3)}
    assert places([found], tmp_path) == {(name, *at) for name in ("tim2", "tim3") for at in expected}


def test_qualifiers_and_values_are_kept(tmp_path):
    (found,) = maps(STRUCTS, tmp_path)
    modes = {item.name: item.fields[0].mode.value for item in found.items if item.name in ("CR1", "SR", "EGR")}
    assert modes == {"CR1": "rw", "SR": "ro", "EGR": "wo"}
    assert [(v.name, v.value) for v in found.items[0].fields[1].values] == [("EDGE", 0), ("CENTER", 1)]


def test_offsets_and_bits_as_macros(tmp_path):
    (found,) = maps(OFFSETS, tmp_path)
    assert found.devices == (("UART0", 0x40000000),)
    expected = {(0, 32, "INTR_STATE.TX_WATERMARK", 0, 1), (0, 32, "INTR_STATE.RX_WATERMARK", 1, 1)}
    expected |= {(0x10, 32, "CTRL.TX", 0, 1), (0x10, 32, "CTRL.NCO", 16, 16), (0x14, 32, "RXBLVL", 0, 32)}
    expected |= {(0x20 + 4 * n, 32, f"DATA[{n}]", 0, 32) for n in range(3)}
    assert places([found], tmp_path) == {("uart0", *at) for at in expected}


def test_a_device_is_chosen_by_its_name(tmp_path):
    (found,) = maps(STRUCTS, tmp_path, "TIM3")
    assert found.devices == (("TIM3", 0x40000400),)
    with pytest.raises(InputError, match=r"no peripheral 'TIM9'\. It has TIM"):
        maps(STRUCTS, tmp_path, "TIM9")
    second = STRUCTS + "typedef struct { volatile unsigned A; } Other_t;\n"
    with pytest.raises(InputError, match=r"2 peripherals\. Name one with --peripheral: TIM, Other"):
        maps(second, tmp_path)


@pytest.mark.parametrize("text", ["", "#define A 1\n", "struct X { int a; };\n", "}}}\0(", "#define REG_\n"])
def test_a_header_without_registers_is_refused(text, tmp_path):
    with pytest.raises(InputError, match="has no registers"):
        maps(text, tmp_path)


def test_a_driver_for_a_header(tmp_path):
    """The command, and a driver that merges what it writes in one register."""
    (tmp_path / "chip.h").write_text(STRUCTS)
    call = ["hal", "--from-header", str(tmp_path / "chip.h"), "-o", str(tmp_path / "map"), "--json"]
    made = CliRunner().invoke(main, call)
    assert made.exit_code == 0, made.output
    assert json.loads(made.output)["peripherals"][0]["registers"] == 7
    code = '#include "tim.h"\nvoid go(void) { tim2->CR1.CMS = TIM_CR1_CMS_CENTER; tim2->CR1.CEN = 1; }\n'
    (tmp_path / "driver.c").write_text(code)
    driver = ["hal", str(tmp_path / "driver.c"), "-I", str(tmp_path / "map")]
    found = CliRunner().invoke(main, [*driver, "--lock", str(tmp_path / "map" / "tim.lock.json"), "--json"])
    assert found.exit_code == 0, found.output
    go = json.loads(found.output)["functions"]["go"]
    assert (go["accesses_before"], len(go["merged"])) == (2, 1)


PLAIN = """
#include <stdint.h>
#define BIT(n) (1u << (n))
struct uart { uint32_t ctrl, status, baud; };
struct other { int x; };
#define UART0 ((volatile struct uart *)0x40010000)
#define UART_CTRL_ENABLE (1u << 0)
#define UART_CTRL_LOOP BIT(3)
#define UART_CTRL_PARITY (3u << 4)
#define UART_CTRL_MODE_A (1u << 8)
#define UART_CTRL_MODE_AB (3u << 8)
#define UART_STATUS_BUSY (1u << 7)
#define UART_BAUD_DEFAULT 4
"""


def test_plain_structs_with_bits_as_macros(tmp_path):
    """Fields of masks that are written as bits; those that overlap are values, and numbers are no fields."""
    (tmp_path / "uart.h").write_text(PLAIN)
    (found,) = imported(tmp_path / "uart.h", "header", ())
    assert found.devices == (("UART0", 0x40010000),)
    fields = {item.name: [(field.name, field.bit, field.size) for field in item.fields] for item in found.items}
    assert fields == {
        "ctrl": [("ENABLE", 0, 1), ("LOOP", 3, 1), ("PARITY", 4, 2)],
        "status": [("BUSY", 7, 1)],
        "baud": [("baud", 0, 32)],
    }
