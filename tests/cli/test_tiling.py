"""Tiles, searches and fronts on the command line: every option, every contradiction, and files that are damaged."""

from __future__ import annotations

import copy
import json
import shutil
from contextlib import suppress
from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright import InputError, compile_model, load_plan, read_model, samples
from edgewright.cli import main
from edgewright.cli.plan_options import ExtraShare, PlanOptions
from edgewright.fusion.by_hand import TileRequest, layer_range, parse_tile, schedule_of
from edgewright.fusion.request import Method, PlanRequest
from edgewright.fusion.timing import ERROR_SHARE
from edgewright.memory import plan as make_plan
from edgewright.memory.fit import dominating, fullest
from edgewright.network import Builder
from edgewright.platform import board_names, boards_with, load_board
from edgewright.program import FusionSchedule, Split, plan_from_dict, plan_text, plan_to_dict

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
SMALL = "stahl_running_example"
RESNET = "resnet8_int8"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {name: samples.write(name, folder) for name in (SMALL, RESNET)}


@pytest.fixture(scope="module")
def resnet():
    return read_model(samples.build(RESNET))


@pytest.fixture(scope="module")
def tiled(models, tmp_path_factory):
    """A plan file with stripes by rows, tiles of both axes, and whole layers."""
    path = tmp_path_factory.mktemp("plans") / "tiled.json"
    result = run(
        *("plan", models[RESNET], "-o", path),
        *("--tile", "conv1..add1:stripes=3", "--tile", "conv4..add2:rows=2,columns=2"),
    )
    assert result.exit_code == 0, result.output
    return SimpleNamespace(path=path, data=json.loads(path.read_text()), output=result.output)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@cache
def planned(model, *options):
    result = run("plan", model, "--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def misused(result, *words):
    """A usage error: one sentence, status 2, nothing written."""
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert all(word in result.output for word in words), result.output


def refused(result, *words):
    assert result.exit_code == 1, result.output
    assert result.output.startswith("Error: ") and len(result.output.strip().splitlines()) == 1
    assert all(word in result.output for word in words), result.output


# What is asked for.


@pytest.mark.parametrize("text", ["5%", "5 %", "0.05", ".05", "1.05x", "1.05×", "+5%"])
def test_extra_work_is_written_in_three_ways(text):
    assert ExtraShare().convert(text, None, None) == 0.05


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-5%", "negative"),
        ("-0.1", "negative"),
        ("0.9x", "below 1x"),
        ("5", "write 5% or 5x"),
        ("much", "write 5%, 0.05 or 1.05x"),
        ("", "write 5%, 0.05 or 1.05x"),
        ("nan", "write 5%, 0.05 or 1.05x"),
        ("inf", "write 5%, 0.05 or 1.05x"),
        ("5%%", "write 5%, 0.05 or 1.05x"),
        ("9" * 400, "write 5%, 0.05 or 1.05x"),
    ],
)
@pytest.mark.parametrize("option", ["--max-overhead", "--max-slowdown"])
def test_extra_work_that_is_none(models, option, text, words, tmp_path):
    misused(run("plan", models[SMALL], option, text), option, words)
    assert list(tmp_path.iterdir()) == []


CONTRADICTIONS = [
    ("--plain --max-overhead 5%", "--plain and --max-overhead"),
    ("--plain --minimise ram", "--plain and --minimise"),
    ("--plain --phases", "--plain and --phases"),
    ("--plain --phase-layers Conv1", "--plain and --phase-layers"),
    ("--plain --tile Conv1:rows=2", "--plain and --tile"),
    ("--plain --method joint", "--plain and --method"),
    ("--tile Conv1:rows=2 --minimise ram", "--tile and --minimise"),
    ("--tile Conv1:rows=2 --max-overhead 0", "--tile and --max-overhead"),
    ("--tile Conv1:rows=2 --phases", "--tile and --phases"),
    ("--phases --minimise ram", "--phases and --minimise"),
    ("--phase-layers Conv1 --max-overhead 5%", "--phase-layers and --max-overhead"),
    ("--method paper --max-overhead 5%", "--method paper and --max-overhead"),
    ("--method paper --max-slowdown 5% --target cortex-m4", "--method paper and --max-slowdown"),
]


@pytest.mark.parametrize("verb", ["plan", "compile", "run"])
@pytest.mark.parametrize(("options", "words"), CONTRADICTIONS)
def test_contradictions(models, verb, options, words, tmp_path):
    misused(run(verb, models[SMALL], *options.split()), words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--minimise ram", "--pareto and --minimise"),
        ("--ram 16K", "--pareto and --ram"),
        ("--tile Conv1:rows=2", "--tile and --pareto"),
        ("--plain", "--plain and --pareto"),
        ("--phases", "--phases and --pareto"),
        ("--method paper", "--method paper and --pareto"),
        ("--max-slowdown 5% --target cortex-m4", "limit these with --max-overhead"),
    ],
)
def test_a_front_leaves_nothing_else_to_ask(models, options, words, tmp_path):
    misused(run("plan", models[SMALL], "--pareto", *options.split()), words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["compile", "run"])
@pytest.mark.parametrize(
    "options",
    ["--minimise ram", "--max-overhead 5%", "--tile Conv1:rows=2", "--phases", "--pull-input", "--plain"],
)
def test_a_plan_made_before_is_carried_out_as_it_is(models, verb, options, tmp_path):
    result = run(verb, models[SMALL], "--plan", tmp_path / "plan.json", *options.split())
    misused(result, f"--plan and {options.split()[0]} contradict each other", "as it is")


@pytest.mark.parametrize("verb", ["compile", "run"])
def test_a_front_is_not_compiled_as_a_whole(models, verb):
    misused(run(verb, models[SMALL], "--pareto"), "writes each to a file, --plan uses one of them")


def test_choices_that_do_not_exist(models):
    misused(run("plan", models[SMALL], "--minimise", "time"), "--minimise")
    misused(run("plan", models[SMALL], "--method", "luck"), "--method")
    misused(run("plan", models[SMALL], "--target", "abacus"), "--target")


def test_a_wish_of_two_minds():
    streamed = FusionSchedule(("a",), streamed=True)
    for wrong in ({"plain": True, "phases": True}, {"schedules": (streamed,), "minimise_ram": True}):
        with pytest.raises(InputError, match="one of these"):
            PlanRequest(**wrong)
    for limit in (-0.1, float("inf"), float("nan")):
        with pytest.raises(InputError, match="a share from 0"):
            PlanRequest(max_overhead=limit)
    with pytest.raises(InputError, match="no limit on extra work"):
        PlanRequest(method=Method.PAPER, max_overhead=0.1)


@pytest.mark.parametrize("text", ["50%", "0.5", "1.5x", "1.5"])
def test_slowdowns_are_written_as_factors_too(text):
    assert ExtraShare(factors=True).convert(text, None, None) == 0.5


def test_time_that_nobody_counted_is_that_of_the_nearest_core(models):
    """What no virtual board counts, and what nobody names, is weighed as a Cortex-M4."""
    there = planned(models[SMALL], "--max-slowdown", "5%", "--target", "cortex-m4")
    for options in ((), ("--target", "host"), ("--target", "aarch64")):
        here = planned(models[SMALL], "--max-slowdown", "5%", *options)
        assert here["estimate"] is None and here["peak_bytes"] == there["peak_bytes"]
    output = run("plan", models[SMALL], "--max-slowdown", "5%").output
    assert "what the last bytes cost, as estimated for cortex-m4" in output


# Tiles by hand.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Conv1", "is not of the form"),
        ("Conv1:rows", "is not of the form"),
        ("Conv1:rows=1", "a number of parts from 2"),
        ("Conv1:rows=-3", "a number of parts from 2"),
        ("Conv1:rows=9999999999", "a number of parts from 2"),
        ("Conv1:depth=2", "rows=, columns=, channels= or stripes="),
        (":rows=2", "names no layers"),
        ("Conv1:rows=2,rows=3", "cuts the same axis twice"),
        ("Conv1:stripes=2,rows=3", "go with no other cut"),
        ("", "is not of the form"),
    ],
)
def test_tiles_that_are_not_written_right(models, text, words, tmp_path):
    misused(run("plan", models[SMALL], "--tile", text), "--tile", words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cnv1..add1:rows=2", ("no layer 'cnv1'", "did you mean 'conv1'?")),
        ("add1..conv1:rows=2", ("'conv1' comes before 'add1'", "conv1..add1")),
        ("conv1..add1:rows=40", ("40 parts along rows", "there are 32 rows at 'add1'")),
        ("conv7..add3:columns=9", ("9 parts along columns", "there are 8 columns")),
        ("conv7..softmax1:rows=2", ("layer 'gemm1' cannot be cut along rows", "no image")),
        ("conv1..conv3:channels=4", ("'conv2' (Conv2d)", "all channels of 'conv1'", "cut there instead")),
        ("gemm1..softmax1:channels=2", ("'softmax1' (Softmax)", "all channels")),
        ("flatten1:rows=2", ("'flatten1' computes nothing",)),
        ("conv4,add2:rows=2", ("no layer 'conv4,add2'",)),
    ],
)
def test_tiles_that_cannot_be_carried_out_name_the_layer_and_why(models, text, words, tmp_path):
    refused(run("plan", models[RESNET], "--tile", text), *words)
    assert list(tmp_path.iterdir()) == []


def test_two_ways_for_one_layer(models):
    result = run("plan", models[RESNET], "--tile", "conv1..add1:rows=2", "--tile", "add1:columns=2")
    refused(result, "'add1' is asked to run in two ways at once")


def test_tiles_and_pulled_rows(models):
    result = run("plan", models[SMALL], "--tile", "Conv1..Conv2:columns=2", "--pull-input")
    refused(result, "each tile needs rows of its input, which arrive only once")


@pytest.mark.parametrize(
    ("text", "tiles", "by_rows"),
    [
        ("conv1..add1:rows=5", ((1, (7, 14, 20, 26, 32)),), False),
        ("conv1..add1:columns=2", ((2, (16, 32)),), False),
        ("conv1..add1:rows=2,columns=4", ((1, (16, 32)), (2, (8, 16, 24, 32))), False),
        ("conv1..add1:stripes=2", ((2, (16, 32)),), True),
        ("conv1..add1:rows=3,stripes=2", ((1, (11, 22, 32)), (2, (16, 32))), True),
        ("add3..globalaveragepool1:channels=3", ((-1, (22, 43, 64)),), False),
        ("conv8..globalaveragepool1:rows=2", ((1, (4, 8)),), False),  # rows of what the mean sums up
        ("globalaveragepool1..gemm1:channels=2", ((-1, (32, 64)),), False),  # channels that gemm1 sums up
    ],
)
def test_tiles_are_as_even_as_can_be(resnet, text, tiles, by_rows):
    schedule = schedule_of(resnet, parse_tile(text))
    assert (schedule.splits, schedule.streamed) == (tuple(Split(*tile) for tile in tiles), by_rows)
    assert make_plan(resnet, schedules=[schedule], explain=False).network.name == resnet.name


def test_names_with_dots_and_colons(resnet):
    assert parse_tile("a/b:0..c:1:rows=3") == TileRequest("a/b:0..c:1", (("rows", 3),))
    assert layer_range(resnet, "conv1 .. conv3") == ("conv1", "conv2", "conv3")
    names = SimpleNamespace(by_name=dict.fromkeys(["a..b", "c", "d..", "e"]), name="dotted")
    assert layer_range(names, "a..b..c") == ("a..b", "c")
    assert layer_range(names, "a..b") == ("a..b",)
    assert layer_range(names, "d....e") == ("d..", "e")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30) | st.from_regex(r"[a-z.:=,]{0,6}:(rows|columns|channels|stripes)=[0-9]{1,3}"))
def test_any_text_is_a_tile_or_refused(text):
    with suppress(InputError):
        tile = parse_tile(text)
        assert tile.layers and all(count >= 2 for _, count in tile.parts)


def test_tiles_by_hand_show_what_they_cost(tiled):
    assert "3 stripes by rows" in tiled.output and "FFMT, 2 × 2 tiles" in tiled.output
    assert "layers in parts" in tiled.output and "3 rows of" in tiled.output
    plan = load_plan(tiled.path)
    assert plan.macs > plan.macs_plain and f"{plan.macs / plan.macs_plain - 1:+.1%}" in tiled.output
    assert "plain peak" in tiled.output and "49,152 B" in tiled.output


def test_channels_by_hand_reproduce_the_running_example(models):
    """S fig. 4.12: the fan-out and the pooling in three parts."""
    data = planned(models[SMALL], "--tile", "Conv3..globalaveragepool1:channels=3")
    assert data["macs"] == data["macs_plain"] and data["techniques"]["Conv3 .. globalaveragepool1"] == "FDT"
    assert data["peak_bytes"] < 16_640 and data["plain_peak_bytes"] == 24_576


def test_rows_and_tiles_side_by_side(models):
    data = planned(models[RESNET], "--tile", "conv4..add2:rows=2", "--phase-layers", "conv1..add1")
    assert data["techniques"]["conv1 .. add1"] == "by rows"
    assert data["techniques"]["conv4 .. add2"] == "FFMT tiles"


# Searches.


def test_the_least_ram_and_with_pulled_rows(models):
    whole = planned(models[SMALL])
    least = planned(models[SMALL], "--minimise", "ram")
    pulled = planned(models[SMALL], "--minimise", "ram", "--pull-input")
    assert max(pulled["peak_bytes"], least["peak_bytes"]) < whole["peak_bytes"]
    assert any(view.get("window") for view in pulled["views"].values())
    assert least["fits"] and whole["estimate"] is None and whole["plain_peak_bytes"] is None
    assert pulled == planned(models[SMALL], "--minimise", "ram", "--pull-rows")


def test_no_more_work_than_allowed(models):
    for limit, factor in (("0%", 1.0), ("10%", 1.1), ("1.5x", 1.5)):
        data = planned(models[SMALL], "--max-overhead", limit)
        assert data["macs_plain"] <= data["macs"] <= factor * data["macs_plain"]


def test_until_it_fits(models):
    whole = planned(models[SMALL])["peak_bytes"]
    least = planned(models[SMALL], "--minimise", "ram", "--max-overhead", "5%")["peak_bytes"]
    for ram in (whole, least):
        data = planned(models[SMALL], "--ram", ram, "--max-overhead", "5%")
        assert data["fits"] and data["peak_bytes"] <= ram
    output = run("plan", models[SMALL], "--ram", least, "--max-overhead", "5%").output
    assert "fits: " in output and "what runs together" in output and "saved" in output


@pytest.mark.parametrize("verb", ["plan", "compile", "run"])
def test_a_budget_below_what_is_possible(models, verb, tmp_path):
    result = run(verb, models[SMALL], "--ram", "1K", "--max-overhead", "5%")
    refused(result, "needs ", "and 1,024 B are there", "fills it, with '", "--pull-input")
    assert list(tmp_path.iterdir()) == []


def test_the_least_ram_must_fit_as_well(models):
    refused(run("compile", models[SMALL], "--minimise", "ram", "--ram", "1K"), "does not fit", "fills it, with '")


def test_a_plan_that_fits_is_found_by_itself(models, tmp_path):
    """Whole layers where they fit, else layers in parts without extra MACs, else with some; each says what was done."""
    least = planned(models[SMALL], "--minimise", "ram", "--max-slowdown", "10x")
    whole = planned(models[SMALL], "--ram", "32K")
    parts = planned(models[SMALL], "--ram", "8K")
    tight = planned(models[SMALL], "--ram", least["peak_bytes"])
    assert whole["fits"] and set(whole["techniques"].values()) <= {"whole layer", "in place"}
    assert parts["fits"] and parts["peak_bytes"] <= 8192 and parts["macs"] == parts["macs_plain"]
    assert tight["fits"] and tight["peak_bytes"] <= least["peak_bytes"] and tight["macs"] > tight["macs_plain"]
    said = "whole layers do not fit: some run in parts"
    assert said not in run("plan", models[SMALL], "--ram", "32K").output
    for verb in ("plan", "compile"):
        options = ("--no-verify",) if verb == "compile" else ()
        output = run(verb, models[SMALL], "--ram", "8K", *options).output
        assert f"{said} (by rows), with no extra MACs" in output
    assert "more MACs" in run("plan", models[SMALL], "--ram", least["peak_bytes"]).output
    assert said not in run("plan", models[SMALL], "--ram", "8K", "--phases").output  # as was asked for
    run("plan", models[SMALL], "--minimise", "ram", "-o", tmp_path / "plan.json")
    made_before = run("compile", models[SMALL], "--plan", tmp_path / "plan.json", "--no-verify", "-o", tmp_path / "o")
    assert made_before.exit_code == 0 and said not in made_before.output


def test_what_fits_nowhere_names_boards_that_would_do(models):
    result = run("compile", models[SMALL], "--ram", "1K", "--no-verify")
    refused(result, "does not fit", " at least, and 1,024 B are there", "try ", "nucleo-f446re", "would do")
    result = run("plan", models[SMALL], "--ram", "1K", "--plain")
    refused_plan = result.output.splitlines()[-1]
    assert result.exit_code == 1 and "a board with more RAM (nucleo-f446re, " in refused_plan


def test_boards_with_memory_enough():
    assert boards_with(0, 0, most=100) == tuple(sorted(board_names(), key=lambda n: (load_board(n).ram_size, n)))
    for name in boards_with(300_000, 900_000, most=100):
        board = load_board(name)
        assert max(memory.usable for memory in board.ram) >= 300_000
        assert not board.flash or board.flash_size >= 900_000
    assert boards_with(1 << 60, 0) == ()


def test_what_dominates(resnet):
    plan = make_plan(resnet, explain=False)
    stage, buffers = fullest(plan)
    assert plan.live_bytes[stage] == max(plan.live_bytes)
    assert [buffer.size for buffer in buffers] == sorted((buffer.size for buffer in buffers), reverse=True)
    name = plan.program.stages[stage].name
    assert dominating(plan).startswith(f"stage '{name}' fills it, with '{buffers[0].name}' (")
    b = Builder("wire")
    assert (
        dominating(make_plan(b.build([b.input("x", (4,))]))) == "what goes in and comes out fills it, with 'x' (16 B)"
    )
    assert "and 2 more (" in dominating(plan, most=len(buffers) - 2)


def test_the_method_of_the_paper(models):
    data = planned(models[SMALL], "--method", "paper")
    assert (data["peak_bytes"], data["macs"]) == (16_384, data["macs_plain"])  # S 4.3.3
    result = run("plan", models[SMALL], "--method", "paper", "--ram", "8K")
    assert result.exit_code == 1 and "does not fit" in result.output and "16,384 B of RAM" in result.output


def test_instructions_are_estimated_where_they_were_counted(models):
    data = planned(models[RESNET], "--board", "nucleo-f446re", "--phases")
    assert data["estimate"]["target"] == "cortex-m4" and data["estimate"]["instructions"] > data["macs"]
    assert 0 < data["estimate"]["error"]["total"] < 1
    output = run("plan", models[RESNET], "--target", "cortex-m4", "--tile", "conv1..add1:rows=4").output
    assert "estimated for cortex-m4, +" in output and "against whole layers" in output
    assert planned(models[SMALL], "--target", "host")["estimate"] is None


def test_no_slower_than_allowed(models):
    """A tenth by default, and not one MAC twice; more RAM where less time is allowed, less where more is."""
    options = ("--target", "cortex-m4", "--minimise", "ram")
    plans = [planned(models[SMALL], *options, *more) for more in LIMITS]
    peaks = [plan["peak_bytes"] for plan in plans]
    assert peaks == sorted(peaks, reverse=True) and peaks[0] > peaks[-1]
    whole = planned(models[SMALL], "--target", "cortex-m4")["estimate"]["instructions"]
    for plan, limit in zip(plans, (0.02, 0.1, 0.5, 9.0), strict=True):
        other = ERROR_SHARE * plan["estimate"]["error"]["total"]  # by another compiler than the search takes, perhaps
        assert plan["estimate"]["instructions"] <= (1 + limit) * (1 + other) * whole
    assert plans[1]["macs"] == plans[1]["macs_plain"]
    assert plans[-1]["macs"] > plans[-1]["macs_plain"]


LIMITS = (("--max-slowdown", "2%"), (), ("--max-slowdown", "1.5"), ("--max-slowdown", "10x"))


def test_what_the_last_bytes_cost(models):
    """The plan stands among others: more RAM is faster, less is slower, and the option that gives it is named."""
    options = ("--target", "cortex-m4", "--minimise", "ram")
    data = planned(models[SMALL], *options)
    trades = data["trades"]
    assert all(a[0] > b[0] and a[1] < b[1] for a, b in pairwise(trades))
    here = next(slower for peak, slower, _ in trades if peak == data["peak_bytes"])
    assert here <= 1.1
    output = run("plan", models[SMALL], *options).output
    assert "what the last bytes cost" in output and "this plan" in output
    less = [slower for peak, slower, _ in trades if peak < data["peak_bytes"]]
    assert not less or "--max-slowdown" in output


# Fronts.


def test_every_point_of_a_front_is_a_plan(models, tmp_path):
    result = run("plan", models[SMALL], "--pareto", "--page", "front.html", "-o", "point.json")
    assert result.exit_code == 0, result.output
    points = json.loads(run("plan", models[SMALL], "--pareto", "-o", "plan.json", "--json").output)
    assert points == sorted(points, reverse=True) and len({peak for peak, _ in points}) == len(points)
    assert all(a[1] < b[1] for a, b in pairwise(points))  # less RAM costs more work
    for peak, macs in points:
        plan = load_plan(tmp_path / f"plan-{peak}.json")
        assert (plan.peak_bytes, plan.macs) == (peak, macs)
        assert (tmp_path / f"point-{peak}.json").read_text() == (tmp_path / f"plan-{peak}.json").read_text()
        assert f"{peak:,}" in result.output
    assert f"compile {models[SMALL]} --plan point-{points[-1][0]}.json" in result.output
    assert (tmp_path / "front.html").read_text().startswith("<!DOCTYPE html>")
    assert f"--plan point-{points[0][0]}.json" in (tmp_path / "front.html").read_text()


def test_a_front_is_written_only_where_asked(models, tmp_path):
    result = run("plan", models[SMALL], "--pareto", "--page", "front.html")
    assert result.exit_code == 0 and [path.name for path in tmp_path.iterdir()] == ["front.html"]
    assert "--plan" not in result.output and "--ram 2816 --max-overhead" in result.output
    assert "--ram 2816 --max-overhead" in (tmp_path / "front.html").read_text()


def test_a_front_in_a_folder_within_a_limit(models, tmp_path):
    (tmp_path / "front").mkdir()
    result = run("plan", models[SMALL], "--pareto", "-o", "front", "--max-overhead", "0", "--json")
    points = json.loads(result.output)
    assert {path.name for path in (tmp_path / "front").iterdir()} == {f"plan-{peak}.json" for peak, _ in points}
    assert len({macs for _, macs in points}) == 1


def test_a_front_for_a_board(models, tmp_path):
    board = tmp_path / "tiny.toml"
    board.write_text(
        'name = "tiny"\n[[processor]]\nname = "core"\nkind = "cortex-m4f"\nclock = "1 MHz"\n'
        '[[memory]]\nname = "sram"\nsize = "2 KiB"\n[[memory]]\nname = "flash"\nsize = "64 KiB"\nread_only = true\n'
    )
    result = run("plan", models[SMALL], "--pareto", "--board", board)
    assert result.exit_code == 1 and "too large" in result.output and "fills it, with '" in result.output
    result = run("plan", models[SMALL], "--pareto", "--board", "nucleo-f446re", "--page", tmp_path / "f.html")
    assert result.exit_code == 0 and "on nucleo-f446re" in result.output and "fits" in result.output


def test_a_front_that_cannot_be_written(models, tmp_path):
    refused(run("plan", models[SMALL], "--pareto", "-o", tmp_path / "no" / "plan.json"), "cannot write")
    assert list(tmp_path.iterdir()) == []


# From a plan to C.


@pytest.mark.slow
@needs_compiler
def test_a_point_of_a_front_compiles(models, tmp_path):
    points = json.loads(run("plan", models[SMALL], "--pareto", "-o", "plan.json", "--json").output)
    peak, macs = points[-1]
    result = run("compile", models[SMALL], "--plan", f"plan-{peak}.json", "-o", "out", "--json", "--optimise", "size")
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    assert data["verified"] and (data["ram_predicted"], data["macs"]) == (peak, macs)


@pytest.mark.parametrize(
    "options",
    ["--minimise ram --pull-input", "--tile Conv1..Conv2:columns=2", "--method paper", "--max-overhead 20%"],
)
def test_compile_takes_what_plan_takes(models, options):
    data = planned(models[SMALL], *options.split())
    result = run("compile", models[SMALL], *options.split(), "-o", "out", "--json", "--no-verify")
    assert result.exit_code == 0, result.output
    built = json.loads(result.output)
    assert (built["ram_predicted"], built["macs"]) == (data["peak_bytes"], data["macs"])
    assert load_plan("out/plan.json").peak_bytes == data["peak_bytes"]


@needs_compiler
def test_run_takes_what_plan_takes(models):
    result = run("run", models[SMALL], "--tile", "Conv1..Conv2:stripes=2", "--json", "--optimise", "size")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["macs"] > planned(models[SMALL])["macs"]


def test_a_wish_in_python(models):
    found = compile_model(models[SMALL], check=False, request=PlanRequest(minimise_ram=True))
    assert found.library.plan.peak_bytes == planned(models[SMALL], "--minimise", "ram")["peak_bytes"]
    assert "report.html" in found.files
    with pytest.raises(InputError, match="as part of the request"):
        compile_model(models[SMALL], check=False, phases=True, request=PlanRequest())


# Plan files that somebody has touched.


def damaged(data, path, value):
    """The plan with one place of it changed; None takes it away."""
    changed = copy.deepcopy(data)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


TILES = ("stages", 1)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*TILES, "splits", 0, "axis"), 7),
        ((*TILES, "splits", 0, "axis"), None),
        ((*TILES, "splits", 0, "axis"), 1),
        ((*TILES, "splits", 0, "ends"), []),
        ((*TILES, "splits", 0, "ends"), [22, 11, 32]),
        ((*TILES, "splits", 0, "ends"), [11, 22, 33]),
        ((*TILES, "splits", 0, "ends", 0), "11"),
        ((*TILES, "splits"), []),
        ((*TILES, "streamed"), "yes"),
        ((*TILES, "layers"), []),
        ((*TILES, "layers", 0), "nothing"),
        ((*TILES, "layers", 0), "conv9"),
        ((*TILES, "rows"), {"conv1": 0}),
        ((*TILES, "columns"), {"conv1": -1}),
        ((*TILES, "columns"), {"nothing": 1}),
        ((*TILES, "sweep"), "channels"),
        ((*TILES, "body"), []),
        (("stages", 3), None),
        (("stages", 0, "name"), 5),
        (("views", "conv1"), None),
        (("views", "conv1", "strides", 0), None),
        (("views", "conv1", "buffer"), "nowhere"),
        (("views", "conv1", "window"), [9, 3]),
        (("views", "conv1", "window"), [1, 3000]),
        (("views", "add1", "tiled"), [3]),
        (("buffers", 0, "size"), 1),
        (("buffers", 0, "offset"), 10**7),
        (("buffers", 0, "last"), 99),
        (("buffers", 0, "memory"), ["ram"]),
        (("peak_bytes",), "small"),
        (("alignment",), 0),
        (("free",), ["conv1"]),
    ],
    ids=lambda part: "/".join(map(str, part)) if isinstance(part, tuple) else str(part)[:20],
)
def test_a_damaged_plan_is_refused_in_one_sentence(models, tiled, path, value, tmp_path):
    (tmp_path / "bad.json").write_text(json.dumps(damaged(tiled.data, path, value)))
    refused(run("compile", models[RESNET], "--plan", "bad.json", "-o", "out", "--no-verify"), "the plan is damaged")
    assert not (tmp_path / "out").exists()


def test_plans_survive_the_way_to_a_file_and_back(resnet, tiled):
    ways = ({}, {"plain": True}, {"phases": True}, {"pull_rows": True})
    plans = [make_plan(resnet, explain=False, **how) for how in ways]
    for plan in (*plans, load_plan(tiled.path)):
        assert plan_text(plan_from_dict(plan_to_dict(plan))) == plan_text(plan)


def test_asked_knows_every_option():
    """A new option must be named in the table of what is given, or contradictions miss it."""
    nothing = PlanOptions(None, None, None, None, None, (), False, (), False, False, None, 1)
    assert not any(nothing.given.values())
    everything = PlanOptions(1, "ram", 0.0, 0.0, "paper", (parse_tile("a:rows=2"),), True, ("a",), True, True, 4, 2)
    assert all(everything.given.values())
