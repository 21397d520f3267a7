"""Boards: the catalogue is sound, units read back, and a wrong file gives one sentence that names the key."""

from __future__ import annotations

import doctest
import os
import re
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.errors import BoardError, InputError
from edgewright.platform import (
    Board,
    Feature,
    board_names,
    catalogue,
    format_frequency,
    format_size,
    load_board,
    parse_board,
    parse_energy,
    parse_frequency,
    parse_power,
    parse_rate,
    parse_size,
    parse_time,
)
from tests.platform.board_tables import with_tables

KIB = 1024
PAGE = Path(__file__).parents[2] / "docs" / "boards.md"

GOOD = """\
name = "my-board"
[[processor]]
name = "core"
kind = "cortex-m4f"
clock = "180 MHz"
[[memory]]
name = "sram"
size = "128 KiB"
[[memory]]
name = "flash"
size = "512 KiB"
read_only = true
[[link]]
name = "uart"
kind = "uart"
bandwidth = 115200
[power]
active = "2.5 W"
"""


# Units


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64K", 65536),
        ("64k", 65536),
        ("128 KiB", 131072),
        ("128KiB", 131072),
        ("1 MB", 10**6),
        ("64 kB", 64000),
        ("64 KB", 64000),
        ("1.5 MiB", 3 * 2**19),
        ("2M", 2**21),
        (" 12 ", 12),
        ("12 B", 12),
        ("0x20000", 131072),
        (4096, 4096),
    ],
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


def test_other_quantities() -> None:
    assert parse_frequency("180 MHz") == 180_000_000
    assert parse_frequency("1.5 GHz") == 1_500_000_000
    assert parse_rate("100 Mbit/s") == 100_000_000
    assert parse_rate("59.7 GB/s") == 477_600_000_000
    assert parse_rate("1 KiB/s") == 8192
    assert parse_power("2.5 W") == 2.5
    assert parse_power("80 mW") == 0.08
    assert parse_power(2.5) == 2.5
    assert parse_time("0.5 ms") == 0.0005
    assert parse_time("80 ns") == parse_time("0.08 µs") == 8e-8
    assert parse_time("1.5 h") == parse_time("90 min") == 5400
    assert parse_energy("52 Wh") == parse_energy("0.052 kWh") == parse_energy("187.2 kJ") == 187_200
    assert parse_energy("5 mWh") == parse_energy("18 J") == 18
    assert parse_time("0 h", or_zero=True) == parse_energy(0, or_zero=True) == parse_size("0 KiB", or_zero=True) == 0


@settings(deadline=None)
@given(st.integers(1, 2**60))
def test_what_is_formatted_reads_back(amount: int) -> None:
    assert parse_size(format_size(amount)) == amount
    assert parse_frequency(format_frequency(amount)) == amount


@settings(deadline=None)
@given(st.integers(1, 1000), st.sampled_from(["B", "KiB", "MiB", "GiB", "kB", "MB", "GB"]))
def test_formatting_is_never_longer_than_what_was_read(count: int, unit: str) -> None:
    assert len(format_size(parse_size(f"{count} {unit}"))) <= len(f"{count} {unit}") + 1


def test_formats_as_people_write() -> None:
    assert format_size(131072) == "128 KiB"
    assert format_size(8 * 2**30) == "8 GiB"
    assert format_size(8 * 10**9) == "8 GB"
    assert format_size(777) == "777 B"
    assert format_frequency(1_430_000_000) == "1.43 GHz"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("128 QB", r'"128 QB" is not a size \("QB" is no unit of it\); expected a size such as "128 KiB"'),
        ("128 kib", "did you mean KiB"),
        ("64 Kb", "did you mean kB"),  # a kilobit is no size
        ("180 MHz", '"MHz" is no unit'),
        ("lots", '"lots" is not a size; expected'),
        ("", '"" is not a size; expected'),
        ("K", "expected a size"),
        ("1e3", "no unit"),
        ("1_000", "no unit"),
        ("1,5 KiB", "expected a size"),
        ("٣ KiB", "expected a size"),  # digits, but not ours
        ("0.3 KiB", "not a whole number of B"),
        ("-4 KiB", "more than zero"),
        (-4, "more than zero"),
        (0, "more than zero"),
        ("0 B", "more than zero"),
        ("99999999 TiB", "too large"),
        (1.5, "1.5 is not a size"),
        (float("nan"), "nan is not a size"),
        (True, "true is not a size"),
        (None, "None is not a size"),
        ([1], "a list is not a size"),
        ("1\n2", r'"1\?2" is not a size'),
        pytest.param(1 << 20000, "a number of more than 30 digits is not a size", id="2**20000"),
        pytest.param("9" * 5000, r'9\.\.\." is not a size', id="5000 digits"),
    ],
)
def test_wrong_sizes_say_what_was_expected(value: object, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_size(value)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -1.0, "0 W", "3 V", 1e300, 1e-320 * 0])
def test_wrong_powers(value: object) -> None:
    with pytest.raises(InputError, match=r"is not a power.*expected a power such as"):
        parse_power(value)


@settings(deadline=None)
@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.from_regex(r"[0-9.]+ ?[kKMGiBHz/sbtW]*")))
def test_parsers_give_a_positive_number_or_an_input_error(value: object) -> None:
    for parse in (parse_size, parse_frequency, parse_rate, parse_power, parse_time, parse_energy):
        try:
            result = parse(value)
        except InputError:
            continue
        assert result > 0


# The catalogue


def test_catalogue_holds_distinct_boards_under_their_file_names() -> None:
    folder = resources.files("edgewright.platform") / "boards"
    assert sorted(f"{name}.toml" for name in board_names()) == sorted(file.name for file in folder.iterdir())
    assert len(catalogue()) >= 16


@pytest.mark.parametrize("name", board_names())
def test_every_board_of_the_catalogue_is_whole(name: str) -> None:
    board = load_board(name)
    assert board.name == name
    assert board.title
    assert board.source
    assert board.ram_size >= 64 * KIB
    assert {m.name for m in board.ram} | {m.name for m in board.flash} == {m.name for m in board.memories}
    assert Board.model_validate_json(board.model_dump_json(by_alias=True)) == board


def test_figures_of_well_known_boards() -> None:
    f446 = load_board("nucleo-f446re")
    assert (f446.processors[0].clock, f446.ram_size, f446.flash_size) == (180_000_000, 128 * KIB, 512 * KIB)
    assert f446.processors[0].features == {Feature.DSP, Feature.FPU}
    assert f446.processors[0].simd_bits == 32
    assert f446.alignment == 4
    assert load_board("raspberry-pi-pico").processors[0].simd_bits == 0
    assert load_board("raspberry-pi-pico-2").processors[0].features == {Feature.DSP, Feature.FPU}
    assert load_board("esp32-s3-devkitc").processors[0].simd_bits == 128
    # DS12110: 1 MiB of RAM = 64 KiB ITCM + 128 DTCM + 512 AXI + 288 + 64 + 4 backup, rounded down by the maker.
    h743 = load_board("nucleo-h743zi")
    assert [m.name for m in h743.ram] == ["dtcm", "axi", "sram123", "sram4"]
    assert h743.ram_size == (128 + 512 + 288 + 64) * KIB
    # DS13313 advertises 564 KiB, with 64 KiB of ITCM and 4 KiB of backup SRAM.
    assert load_board("nucleo-h723zg").ram_size == (564 - 64 - 4) * KIB
    assert load_board("nucleo-l4r5zi").ram_size == 640 * KIB
    # DS13086 advertises 786 KiB with 2 KiB of backup SRAM; the PSRAM is the board's.
    assert load_board("b-u585i-iot02a").ram_size == (786 - 2 + 8192) * KIB
    assert {m.name: m.usable for m in load_board("esp32-c3").memories}["sram"] == 384 * KIB
    gap8 = load_board("gapuino")
    assert gap8.ram[0].size < gap8.ram[1].size < gap8.ram[2].size
    assert [p.count for p in gap8.processors if p.name == "cluster"] == [8]
    tx2 = load_board("jetson-tx2")
    assert [p.kind.value for p in tx2.processors] == ["denver2", "cortex-a57", "gpu"]
    assert [p.lanes for p in tx2.processors if p.name == "gpu"] == [256]
    assert tx2.power.active == 15.0


def test_the_page_shows_the_present_tables() -> None:
    """EDGEWRIGHT_UPDATE_DOCS=1 rewrites them."""
    current = with_tables(PAGE.read_text(encoding="utf-8"))
    if os.environ.get("EDGEWRIGHT_UPDATE_DOCS"):
        PAGE.write_text(current, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == current


def test_the_examples_of_the_page_hold() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8").failed == 0
    example = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert example
    board = parse_board(example[1], "page")
    assert [(m.name, m.usable) for m in board.ram] == [("ccm", 64 * KIB), ("sram", 124 * KIB)]
    # The messages that the page quotes are the ones that are given.
    broken = (
        example[1].replace("size =", "sise =", 2).replace("sise =", "size =", 1),
        example[1].replace('"128 KiB"', '"128 QB"'),
        example[1].replace('clock = "180 MHz"\n', ""),
    )
    for text in broken:
        assert message(text, "my-board.toml") in page


# Reading


def test_a_small_file_is_enough_and_defaults_are_stated() -> None:
    board = parse_board(GOOD, "my.toml")
    assert (board.ram_size, board.flash_size, board.alignment) == (128 * KIB, 512 * KIB, 4)
    assert board.processors[0].count == 1
    assert board.links[0].bandwidth == 115200
    assert board.power.idle is None
    assert hash(board) == hash(parse_board(GOOD, "another name"))


def test_load_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert load_board(path) == load_board(str(path)) == parse_board(GOOD, "")


def test_memories_know_their_processors() -> None:
    two = '[[processor]]\nname = "dsp"\nkind = "rv32gc"\nclock = 1\n'
    text = GOOD.replace("[[memory]]", two + '[[memory]]\nname = "l1"\nsize = 64\nattached = ["dsp"]\n[[memory]]', 1)
    board = parse_board(text, "")
    assert [m.name for m in board.memories_of("dsp")] == ["l1", "sram", "flash"]
    assert [m.name for m in board.memories_of("core")] == ["sram", "flash"]


# Errors


def message(text: str, where: str = "my.toml") -> str:
    with pytest.raises(BoardError) as caught:
        parse_board(text, where)
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Keys
        ("read_only", "readonly", 'my.toml: memory[1].readonly is not a key here; did you mean "read_only"?'),
        ('size = "512', 'sise = "512', 'my.toml: memory[1].sise is not a key here; did you mean "size"?'),
        ("[[memory]]", "[[memori]]", 'my.toml: memori is not a key here; did you mean "memory"?'),
        ("active", "volts", "my.toml: power.volts is not a key here; expected one of idle, active"),
        ("active", '"a b"', 'my.toml: power."a b" is not a key here; expected one of idle, active'),
        ('size = "128 KiB"\n', "", 'my.toml: memory[0].size is missing; expected a size, such as "128 KiB"'),
        ('name = "my-board"\n', "", 'my.toml: name is missing; expected a name of a-z, 0-9, "-" and "_"'),
        # Values
        (
            '"180 MHz"',
            '"180 MB"',
            'my.toml: processor[0].clock: "180 MB" is not a frequency ("MB" is no unit of it); '
            'expected a frequency such as "180 MHz", "1.5 GHz" or 180000000',
        ),
        (
            '"128 KiB"',
            '"-1 KiB"',
            'my.toml: memory[0].size: "-1 KiB" is not a size (it must be more than zero); '
            'expected a size such as "128 KiB", "64K", "1 MB" or 65536',
        ),
        (
            "= true",
            '= "yes"',
            'my.toml: memory[1].read_only is "yes"; expected true for flash and the like, else false',
        ),
        (
            "= true",
            "= 1",
            "my.toml: memory[1].read_only is 1; expected true for flash and the like, else false",
        ),
        ('kind = "uart"', 'kind = "uat"', '; did you mean "uart"?'),
        (
            '"cortex-m4f"',
            '"cortex-m4g"',
            'my.toml: processor[0].kind is "cortex-m4g"; expected one of cortex-m0plus, ',
        ),
        ('"cortex-m4f"', '"Cortex-M4F"', '; did you mean "cortex-m4f"?'),
        ('"my-board"', '"My Board"', 'my.toml: name is "My Board"; expected a name of a-z, 0-9, "-" and "_"'),
        ("[power]", "[[power]]", "my.toml: power is a list; expected a table headed [power]"),
        ("[[link]]", "[link]", "my.toml: link is a table; expected a table headed [[link]], or none"),
        (
            "clock =",
            "count = 0\nclock =",
            "processor[0].count is 0; expected the number of equal cores, at least 1",
        ),
        (
            "clock =",
            "count = 0x" + "f" * 9000 + "\nclock =",
            "processor[0].count is a number of more than 30 digits",
        ),
        ("clock =", 'features = ["fpuu"]\nclock =', 'processor[0].features[0] is "fpuu"; expected a list of'),
        # Rules
        ('"flash"', '"sram"', 'my.toml: memory[1].name is "sram", as in memory[0]; expected a unique name'),
        ('name = "my', 'alignment = 12\nname = "my', "my.toml: alignment is 12; expected a power of two"),
        (
            'name = "my',
            'alignment = 0\nname = "my',
            "my.toml: alignment is 0; expected the bytes every buffer",
        ),
        ("clock =", "lanes = 2\nclock =", "my.toml: processor[0].lanes is for a gpu"),
        (
            "read_only = true",
            'read_only = true\nreserved = "512 KiB"',
            "my.toml: memory[1].reserved is 524288 bytes; expected less than the size, 524288",
        ),
        (
            "read_only = true",
            'attached = ["cpu"]',
            'my.toml: memory[1].attached names "cpu"; expected one of core',
        ),
        (
            'size = "128 KiB"',
            'size = "128 KiB"\naddress = 0\n[[memory]]\nname = "b"\nsize = 1\naddress = 0x1ffff',
            'my.toml: memory[1].address puts "b" over "sram" (memory[0]); expected disjoint ranges',
        ),
    ],
)
def test_errors_name_file_key_and_expectation(old: str, new: str, expected: str) -> None:
    assert old in GOOD
    text = message(GOOD.replace(old, new, 2 if old == "[[memory]]" else 1))
    assert expected in text
    assert text.startswith("my.toml: ")
    assert "\n" not in text


def test_a_board_needs_a_processor_and_a_writable_memory() -> None:
    start = GOOD.index("[[processor]]")
    memory = GOOD.index("[[memory]]")
    link = GOOD.index("[[link]]")
    without_processor = GOOD[:start] + GOOD[memory:]
    assert (
        message(without_processor)
        == "my.toml: processor is missing; expected a table headed [[processor]], at least one"
    )
    assert "processor is empty; expected at least one" in message("processor = []\n" + without_processor)
    assert "memory is missing; expected a table headed [[memory]]" in message(GOOD[:memory] + GOOD[link:])
    assert "memory has no writable entry" in message("memory = []\n" + GOOD[:memory] + GOOD[link:])
    only_flash = GOOD.replace('size = "128 KiB"', 'size = "128 KiB"\nread_only = true')
    assert "memory has no writable entry; expected at least one [[memory]] without read_only" in message(only_flash)


def test_several_problems_are_counted() -> None:
    text = message(GOOD.replace('"128 KiB"', '"x"').replace('"512 KiB"', '"y"').replace('"180 MHz"', '"z"'))
    assert text.startswith('my.toml: processor[0].clock: "z" is not a frequency')
    assert text.endswith("(and 2 more)")


def test_adjoining_memories_and_private_ones_at_one_address_are_fine() -> None:
    both = GOOD.replace('size = "128 KiB"', 'size = "128 KiB"\naddress = 0x20000000')
    for address in ("0x20020000", "0x1ff80000"):  # right above, right below
        parse_board(both.replace('size = "512 KiB"', f'size = "512 KiB"\naddress = {address}'), "")
    with pytest.raises(BoardError, match=r"memory\[1\]\.address"):
        parse_board(both.replace('size = "512 KiB"', 'size = "512 KiB"\naddress = 0x2001ffff'), "")
    private = '\n[[processor]]\nname = "net"\nkind = "cortex-m33"\nclock = 1\n[[memory]]\nname = "n"\nsize = 1'
    private += '\naddress = 0x20000000\nattached = ["net"]\n'
    with pytest.raises(BoardError, match="over"):
        parse_board(both + private, "")
    parse_board(both.replace("address", 'attached = ["core"]\naddress') + private, "")


def test_what_is_not_a_board_file(tmp_path: Path) -> None:
    with pytest.raises(
        BoardError, match=r'"nucleo-f446r" is no board of the catalogue; did you mean "nucleo-f446re"\?'
    ):
        load_board("nucleo-f446r")
    with pytest.raises(BoardError, match=r"expected one of b-u585i-iot02a, .*; or give the path of a \.toml file"):
        load_board("zzz")
    with pytest.raises(BoardError, match=r"none\.toml: cannot be read: No such file.*; expected a board file in TOML"):
        load_board(tmp_path / "none.toml")
    with pytest.raises(BoardError, match="cannot be read"):
        load_board(tmp_path)
    with pytest.raises(BoardError, match="cannot be read"):
        load_board("nul\0.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(BoardError, match=r"latin\.toml: is not UTF-8 text \(byte 11\)"):
        load_board(tmp_path / "latin.toml")
    assert "is not TOML: " in message("name = ")
    assert "(at line 1, column 8)" in message("name = ?")
    assert "is nested too deeply" in message("a = " + "[" * 20000)
    assert "is not TOML: " in message("a = " + "9" * 5000)


VALUES = [
    "0",
    "-1",
    "true",
    "1.5",
    "nan",
    "inf",
    '""',
    '"x"',
    '"1 KiB"',
    "[]",
    "[1]",
    "[[1]]",
    "{}",
    "{ a = 1 }",
]
VALUES += [
    '"a\\nb"',
    "1979-05-27",
    "07:32:00",
    "0x" + "f" * 5000,
    '"\\u0000"',
    '["sram"]',
    "99999999999999999999",
]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_mutation_of_a_file_raises_anything_but_a_board_error(data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from([GOOD, *_catalogue_texts()])).splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(lines) - 1))
        line = lines[index]
        cut = data.draw(st.integers(0, len(line)))
        lines[index] = data.draw(
            st.one_of(
                st.sampled_from([f"{line.partition('=')[0]} = {value}" for value in VALUES]),
                st.sampled_from([*lines, "", line[:cut], line[cut:]]),
                st.text(max_size=20),
            )
        )
    try:
        board = parse_board("\n".join(lines), "fuzz.toml")
    except BoardError as error:
        problem = str(error)
    else:
        problem = f"fuzz.toml: {'' if board.ram else 'no RAM'}"
    assert problem.startswith("fuzz.toml: ")
    assert "no RAM" not in problem
    assert "\n" not in problem


def _catalogue_texts() -> list[str]:
    folder = resources.files("edgewright.platform") / "boards"
    return [(folder / f"{name}.toml").read_text(encoding="utf-8") for name in ("gapuino", "jetson-tx2")]
