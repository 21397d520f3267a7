"""Base addresses of devices from TOML files and devicetrees, as drivers use them."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from edgewright.cli import main
from edgewright.errors import InputError
from edgewright.hal.importing.address_file import address_macros, read_addresses

TREE = """/dts-v1/;
#include <dt-bindings/clock/some.h>
#define UNUSED 1
/ {
    #address-cells = <1>;
    #size-cells = <1>;
    compatible = "acme,board", "acme,{ odd }";
    cpus { #address-cells = <1>; #size-cells = <0>; cpu0: cpu@0 { reg = <0>; }; };
    /* a bus at the same addresses */
    soc {
        #address-cells = <1>;
        #size-cells = <1>;
        ranges;
        uart0: serial@40004400 {
            compatible = "acme,uart";
            reg = <0x40004400 0x400>, <0x50000000 4>;
            clocks = <&rcc (1 << 3) 17>;
            interrupts = <38 0>;
            status = "okay";
        };
        i2c1: i2c@40005400 {
            #address-cells = <1>;
            #size-cells = <0>;
            reg = <0x40005400 0x400>;
            sensor: bme280@76 { reg = <0x76>; };
        };
        spi_1: spi@40003800 { reg = <SPI_BASE 0x400>; };
    };
    far: bus@80000000 {
        #address-cells = <2>;
        #size-cells = <1>;
        ranges = <0 0 0x80000000 0x1000>, <0 0x2000 0x90000000 0x1000>;
        gpio: gpio@2040 { reg = <0 0x2040 0x10>; gpio-controller; };
        lost: gpio@9000 { reg = <0 0x9000 0x10>; };
    };
};
&uart0 { current-speed = <115200>; };
"""


def written(tmp_path, text, name):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_a_devicetree_is_seen_through_its_buses(tmp_path):
    found = read_addresses(written(tmp_path, TREE, "board.dts"))
    assert found == {"uart0": 0x40004400, "i2c1": 0x40005400, "gpio": 0x90000040}


def test_an_overlay_moves_a_device(tmp_path):
    tree = TREE + "&uart0 { reg = <0x40004800 0x400>; };\n"
    assert read_addresses(written(tmp_path, tree, "board.overlay"))["uart0"] == 0x40004800


def test_toml_has_addresses_or_tables(tmp_path):
    text = "[devices]\nuart0 = 0x40004400\nspi-1 = { address = 1073756160, group = 'Spi' }\n"
    found = read_addresses(written(tmp_path, text, "board.toml"))
    assert found == {"uart0": 0x40004400, "spi-1": 0x40003800}
    assert address_macros(found) == ["UART0_ADDRESS=0x40004400u", "SPI_1_ADDRESS=0x40003800u"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", "devices = 3", "table of names"),
        ("a.toml", "[devices]\nuart0 = '0x4'", "devices.uart0 is no address"),
        ("a.toml", "[devices]\nuart0 = 0x100000000", "32 bits"),
        ("a.toml", "[devices", "no TOML"),
        ("a.toml", "", "no device with an address"),
        ("a.dts", "/ { uart0: serial@4 { reg = <4 4>; };", "not closed"),
        ("a.dts", "};", "does not open"),
        ("a.dts", "/ { ^ };", "line 1: '^'"),
        ("a.dts", "/ { " + "a { " * 80, "deeper than 64"),
        ("a.dts", "/ { soc { uart0: serial@4 { reg = <4 4>; }; }; };", "no device with an address"),
    ],
)
def test_what_is_wrong_is_said(name, text, said, tmp_path):
    with pytest.raises(InputError, match=said.replace("^", r"\^")):
        read_addresses(written(tmp_path, text, name))


DRIVER = """#include "edgewright_hal.h"
bfGroup Uart { bit enable; uint8 divider; };
make_device(Uart, uart0, UART0_ADDRESS);
void start(uint8_t by) { uart0->divider = by; uart0->enable = 1; }
"""


def test_a_driver_takes_its_addresses_from_the_file(tmp_path):
    driver, tree = written(tmp_path, DRIVER, "driver.c"), written(tmp_path, TREE, "board.dts")
    call = ["hal", str(driver), "--method", "paper", "--json"]
    found = CliRunner().invoke(main, [*call, "--addresses", str(tree)])
    assert found.exit_code == 0, found.output
    assert json.loads(found.output)["devices"][0]["address"] in (0x40004400, "0x40004400")
    without = CliRunner().invoke(main, call)
    assert without.exit_code == 1
    assert "UART0_ADDRESS" in json.loads(without.output)["refused"][0]["reason"]
