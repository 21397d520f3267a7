"""A conventional driver beside the generated one: what both cost, and maps that cannot be read."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from edgewright.cli.main import main
from edgewright.errors import InputError
from edgewright.hal.design_flow import analyse, naive
from edgewright.hal.verify import compare_with_twin
from edgewright.hal.verify.twin_map import map_bytes_of, read_twin_map

OURS = """
#include "edgewright_hal.h"
bfGroup Lane { bit on; uint4 gain; };
bfGroup Mixer { bit enable; uint8 volume; bfGroup Lane lanes[4]; };
make_device(Mixer, mixer, 0x40000000);
void mixer_init(uint8_t volume) { mixer->volume = volume; mixer->enable = 1; }
void mixer_use(uint32_t lane, uint8_t gain) { mixer->lanes[lane].gain = gain; mixer->lanes[lane].on = 1; }
int mixer_volume(void) { return mixer->volume; }
"""
TWIN = """
#include <stdint.h>
#define CTRL (*(volatile uint32_t *)0x40000000u)
#define VOLUME (*(volatile uint32_t *)0x40000004u)
#define ON (*(volatile uint32_t *)0x40000008u)
#define GAIN (*(volatile uint32_t *)0x4000000cu)
void mixer_init(uint8_t volume) { VOLUME = volume; CTRL = 1; }
void mixer_use(uint32_t lane, uint8_t gain)
{
    GAIN = (GAIN & ~(15u << 4 * lane)) | (gain & 15u) << 4 * lane;
    ON |= 1u << lane;
}
int mixer_volume(void) { return VOLUME; }
"""
MAP = """
[mixer]
0x0 = { enable = 0 }
0x4 = { volume = 0 }
0x8 = { "lanes[i].on" = "0 + 1 i, i < 4" }
0xC = { "lanes[i].gain" = "0 + 4 i, i < 4" }
"""


@pytest.fixture
def folder(tmp_path):
    for name, text in {"ours.c": OURS, "twin.c": TWIN, "twin.toml": MAP}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_both_drivers_are_measured_with_the_same_calls(folder):
    pytest.importorskip("unicorn")
    asked = ["hal", str(folder / "ours.c"), "--twin", str(folder / "twin.c"), "--no-verify", "--json"]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["twin"]
    accesses = {one["function"]: (one["twin"]["accesses"], one["ours"]["accesses"]) for one in found["functions"]}
    assert accesses == {"mixer_init": (64, 32), "mixer_use": (128, 32), "mixer_volume": (32, 32)}
    assert not any(one["other_results"] or one["left_out"] for one in found["functions"])
    assert (found["twin"]["accesses"], found["ours"]["accesses"], found["twin_map_bytes"]) == (224, 96, 16)
    assert found["ours"]["code_bytes"] < found["twin"]["code_bytes"]


def test_a_function_that_costs_more_than_the_twins_is_named(folder):
    pytest.importorskip("unicorn")
    (folder / "twin.c").write_text(TWIN.replace("VOLUME = volume; CTRL = 1;", "VOLUME = volume | 1u << 8;"))
    (folder / "twin.toml").write_text(
        MAP.replace("0x0 = { enable = 0 }", "").replace("volume = 0", "volume = 0, enable = 8")
    )
    analysis = analyse([folder / "ours.c"])
    found = compare_with_twin(naive(analysis), folder / "twin.c", calls=4)
    assert [(one.function, one.twin.accesses, one.ours.accesses) for one in found.dearer] == [("mixer_init", 4, 8)]
    (folder / "twin.c").write_text(TWIN.replace("int mixer_volume", "int mixer_loudness"))
    with pytest.raises(InputError, match="has no function 'mixer_volume'"):
        compare_with_twin(naive(analysis), folder / "twin.c")


def test_a_map_says_where_every_field_lies(folder):
    description = analyse([folder / "ours.c"]).description
    registers = read_twin_map(folder / "twin.toml", description)
    assert map_bytes_of(registers) == 16
    (gains,) = (register for register in registers if register.offset == 12)
    assert [(at.name, at.bit, at.size) for at in gains.fields] == [(f"lanes[{n}].gain", 4 * n, 4) for n in range(4)]
    (folder / "twin.toml").write_text('[mixer]\n"0 + 8 i, i < 4" = { "lanes[i].on" = 31 }\n')
    registers = read_twin_map(folder / "twin.toml", description)
    assert [(one.offset, one.fields[0].name, one.fields[0].bit) for one in registers] == [
        (8 * n, f"lanes[{n}].on", 31) for n in range(4)
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[mixer", "is no TOML"),
        ("[fader]\n", r"\[fader\] is no device of the driver; it has mixer"),
        ("mixer = 3\n", "is a table of registers"),
        ("[mixer]\n0x0 = 3\n", "says which fields it has"),
        ("[mixer]\nx = { enable = 0 }\n", "'x' is no place"),
        ("[mixer]\n0x0 = { enable = true }\n", "'True' is no place"),
        ("[mixer]\n0x0 = { volume = 25 }\n", "has 8 bits and does not fit from bit 25 on"),
        ("[mixer]\n0x0 = { loud = 0 }\n", "mixer has no field 'loud'"),
        ('[mixer]\n0x0 = { "lanes[4].on" = 0 }\n', "beyond the 4 elements"),
        ('[mixer]\n0x0 = { "lanes.on" = 0 }\n', "has no field 'lanes.on'"),
        ('[mixer]\n0x0 = { "lanes[0]" = 0 }\n', "is no field"),
        ('[mixer]\n0x0 = { "volume.on" = 0 }\n', "has no field 'volume.on'"),
    ],
)
def test_maps_that_cannot_be_read(folder, text, told):
    (folder / "twin.toml").write_text(text)
    with pytest.raises(InputError, match=told):
        read_twin_map(folder / "twin.toml", analyse([folder / "ours.c"]).description)
    (folder / "twin.toml").unlink()
    with pytest.raises(InputError, match="which says where the twin has the fields"):
        read_twin_map(folder / "twin.toml", analyse([folder / "ours.c"]).description)
