"""`edgewright hal` as a user meets it: every option, what is written, and what it says about bad input."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgewright.cli import main

DRIVER = """
#include "edgewright_hal.h"

bfGroup Timer {
    bit enable;
    uint4 prescale;
    bit irq;
    uint32 ro count;
    bit w1c overflow;
};

make_device(Timer, timer, 0x40000000);

void timer_start(struct Timer *t, uint32_t prescale)
{
    t->prescale = prescale;
    t->irq = 1;
    t->enable = 1;
}

uint32_t timer_count(struct Timer *t)
{
    return t->count;
}
"""
WRITTEN = {
    "timer.c",
    "timer_hal.h",
    "edgewright_hal.h",
    "timer.rdl",
    "timer.svd",
    "timer.html",
    "timer.json",
    "timer.lock.json",
}


@pytest.fixture
def driver(tmp_path):
    path = tmp_path / "timer.c"
    path.write_text(DRIVER)
    return path


def run(*arguments, verified=False):
    """Runs the verb, without verification unless a test is about that."""
    quick = () if verified or "--verify" in arguments else ("--no-verify",)
    return CliRunner().invoke(main, ["hal", *map(str, arguments), *quick])


def succeed(*arguments) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def answer(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def places(found):
    return {f["name"]: (r["offset"], f["bit"], f["size"]) for r in found["registers"] for f in r["fields"]}


def test_without_output_it_shows_registers_and_savings(driver, tmp_path):
    text = succeed(driver)
    assert "timer_start" in text and "prescale" in text and "accesses in the code become" in text
    assert list(tmp_path.iterdir()) == [driver]


def test_output_has_all_files_and_the_folder_is_made(driver, tmp_path):
    out = tmp_path / "deep" / "out"
    succeed(driver, "-o", out)
    assert {path.name for path in out.iterdir()} == WRITTEN
    assert "HAL_WRITE_Timer_" in (out / "timer.c").read_text()
    assert json.loads((out / "timer.json").read_text())["map_bytes"] > 0


def test_the_driver_compiles_against_what_include_prints(driver):
    flag = succeed("--include").strip()
    command = ["gcc", "-std=c11", "-Wall", "-Wextra", "-fsyntax-only", flag, str(driver)]
    assert subprocess.run(command, check=False).returncode == 0


def test_json_has_registers_functions_and_refusals(driver):
    found = answer(driver)
    fields = places(found)
    assert set(fields) == {"enable", "prescale", "irq", "count", "overflow"}
    assert fields["count"][2] == 32
    start = found["functions"]["timer_start"]
    assert start["accesses_before"] == 3 and start["accesses_after"] == 1
    assert start["merged"][0]["accesses"] == [0, 1, 2] and start["regions"] == [[0, 1, 2]]
    assert found["refused"] == [] and found["files"] == [] and found["layout"]["optimal"]
    assert {r["device"] for r in found["registers"]} == {"timer"}


def test_explain_names_regions_and_merges(driver):
    text = succeed(driver, "--explain")
    assert "access regions" in text and "0, 1, 2 merged" in text and "t->prescale" in text


def test_check_only_checks(driver, tmp_path):
    assert "nothing to refuse" in succeed(driver, "--check", "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert answer(driver, "--check")["fields"] == 5


def test_refused_sources_are_listed_and_nothing_is_written(driver, tmp_path):
    driver.write_text(DRIVER + "\nvoid bad(struct Timer *t) { uint8_t *p = (uint8_t *)&t->prescale; *p = 1; }\n")
    result = run(driver, "-o", tmp_path / "out")
    assert result.exit_code == 1
    line = DRIVER.count("\n") + 2
    assert f"timer.c:{line}:" in result.stderr and "nothing was written" in result.stderr
    assert not (tmp_path / "out").exists()
    result = run(driver, "--json")
    assert result.exit_code == 1
    refused = json.loads(result.stdout)["refused"]
    assert refused[0]["line"] == line and refused[0]["reason"]


def test_source_that_does_not_compile_is_an_error(driver):
    driver.write_text(DRIVER + "\nint f(void) { return undeclared; }\n")
    result = run(driver)
    assert result.exit_code == 1 and "undeclared" in result.output and "Traceback" not in result.output


def test_missing_files_are_errors(tmp_path):
    result = run(tmp_path / "none.c")
    assert result.exit_code == 1 and "none.c" in result.output


def test_the_next_run_keeps_every_field(driver, tmp_path):
    out = tmp_path / "out"
    before = places(answer(driver, "-o", out))
    changed = DRIVER.replace("bit enable;", "uint3 mode;\n    bit enable;").replace(
        "t->enable = 1;", "t->enable = 1;\n    t->mode = 2;"
    )
    driver.write_text(changed)
    after = answer(driver, "-o", out)
    assert {name: place for name, place in places(after).items() if name != "mode"} == before
    assert after["layout"]["made_by"] == "lock"
    again = answer(driver, "-o", out, "--relock")
    assert again["functions"]["timer_start"]["accesses_after"] == 1
    assert again["layout"]["made_by"] == "optimal"


@pytest.mark.parametrize("method", ["optimal", "paper"])
def test_new_fields_of_one_device_leave_the_others_alone(driver, tmp_path, method):
    more = "bfGroup Led { bit on; };\nmake_device(Led, led, 0x40001000);\nvoid led_on(void) { led->on = 1; }\n"
    out = tmp_path / "out"
    driver.write_text(DRIVER + more)
    before = places(answer(driver, "-o", out, "--method", method))
    driver.write_text(DRIVER + more.replace("bit on;", "bit on; uint4 dimmed;"))
    after = places(answer(driver, "-o", out, "--method", method))
    assert after.pop("dimmed") == (4, 0, 4)
    assert after == before


def test_a_lock_that_contradicts_the_source_is_an_error(driver, tmp_path):
    out = tmp_path / "out"
    succeed(driver, "-o", out)
    old = {path: path.read_bytes() for path in out.iterdir()}
    driver.write_text(DRIVER.replace("uint4 prescale", "uint5 prescale"))
    result = run(driver, "-o", out)
    assert result.exit_code == 1 and "5 bits, not 4" in result.output and "--relock" in result.output
    assert {path: path.read_bytes() for path in out.iterdir()} == old
    succeed(driver, "-o", out, "--relock")


def test_a_lock_that_breaks_a_rule_of_the_new_source_is_an_error(driver, tmp_path):
    """irq shares a register with what is written by itself now; as a clear-on-read field it must not."""
    out = tmp_path / "out"
    succeed(driver, "-o", out)
    driver.write_text(DRIVER.replace("bit irq;", "bit clear_on_read irq;"))
    result = run(driver, "-o", out)
    assert result.exit_code == 1 and "share a register" in result.output and "--relock" in result.output


def test_a_lock_may_lie_elsewhere(driver, tmp_path):
    lock = tmp_path / "kept.json"
    succeed(driver, "-o", tmp_path / "out", "--lock", lock)
    assert lock.exists() and not (tmp_path / "out" / "timer.lock.json").exists()
    assert answer(driver, "--lock", lock)["layout"]["made_by"] == "lock"
    assert run(driver, "--lock", tmp_path / "none.json").exit_code == 1


def test_the_map_can_be_limited(driver):
    assert answer(driver, "--max-map", "12", "--minimise", "map")["map_bytes"] <= 12
    result = run(driver, "--max-map", "4")
    assert result.exit_code == 1 and "4" in result.output


def test_the_paper_and_the_bus(driver):
    assert answer(driver, "--method", "paper")["layout"]["made_by"] == "paper"
    widths = {r["width"] for r in answer(driver, "--byte-lanes")["registers"]}
    assert min(widths) == 8


def test_pareto_has_several_layouts(driver):
    front = answer(driver, "--pareto")["pareto"]
    assert front and {"map_bytes", "code", "accesses"} == set(front[0])
    assert "map, B" in succeed(driver, "--pareto")


def test_the_page_is_one_document(driver, tmp_path):
    page = tmp_path / "timer.html"
    succeed(driver, "--page", page, "--pareto")
    text = page.read_text()
    assert "prescale" in text and text.count("<svg") >= 3
    assert "http://" not in text.replace("http://www.w3.org", "") and "<script" not in text


def test_sources_are_never_overwritten(driver, tmp_path):
    result = run(driver, "-o", tmp_path)
    assert result.exit_code == 1 and "would be overwritten" in result.output
    assert driver.read_text() == DRIVER and list(tmp_path.iterdir()) == [driver]


def test_a_folder_that_cannot_be_made_leaves_nothing(driver, tmp_path):
    (tmp_path / "file").write_text("")
    result = run(driver, "-o", tmp_path / "file" / "out")
    assert result.exit_code == 1 and "file" in result.output and "Traceback" not in result.output


def test_peakrdl_files_go_to_folders(driver, tmp_path):
    pytest.importorskip("peakrdl_cheader")
    out = tmp_path / "out"
    succeed(driver, "-o", out, "--rdl", "cheader,ipxact")
    assert (out / "cheader" / "timer_map.h").exists() and (out / "ipxact" / "timer_map.xml").exists()


@pytest.mark.parametrize(
    "options", [["--rdl", "html"], ["--rdl", "pdf", "-o", "x"], ["--target", "z80"], ["--model", "x.py"]]
)
def test_wrong_usage_ends_with_status_2(driver, options):
    assert run(driver, *options).exit_code == 2


def test_verify_runs_both_and_finds_them_equal(driver):
    pytest.importorskip("unicorn")
    found = answer(driver, "--verify")
    assert found["verification"]["is_equal"]
    assert {f["function"] for f in found["verification"]["functions"]} == {"timer_start", "timer_count"}
    assert "same" in succeed(driver, "--verify")


def test_a_difference_ends_with_status_1_and_writes_nothing(driver, tmp_path, monkeypatch):
    from edgewright.cli import hal_steps
    from edgewright.hal.verify import Counts, Difference, FunctionCheck, Verification

    checked = FunctionCheck("timer_start", 3, Counts(), Counts())
    wrong = Difference("timer_start", "timer_start(1)", "irq is 0, not 1")
    found = Verification("rv32imc", "gcc", 0, (checked,), (wrong,), 10, 8)
    monkeypatch.setattr(hal_steps, "verify", lambda *_, **__: found)
    result = run(driver, "--verify", "-o", tmp_path / "out")
    assert result.exit_code == 1 and "irq is 0, not 1" in result.output and "differs" in result.output
    assert not (tmp_path / "out").exists()


def test_include_prints_the_folder_of_the_header():
    folder = Path(succeed("--include").strip().removeprefix("-I"))
    assert (folder / "edgewright_hal.h").exists()


def test_output_is_verified(driver, tmp_path):
    """With -o both versions run, unless that is asked not to be."""
    pytest.importorskip("unicorn")
    result = run(driver, "-o", tmp_path / "out", "--json", verified=True)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["verification"]["is_equal"]
    assert "verification" not in json.loads(run(driver, "-o", tmp_path / "other", "--json").output)


def test_nothing_compared_is_an_error(tmp_path):
    pytest.importorskip("unicorn")
    path = tmp_path / "lamp.c"
    head = '#include "edgewright_hal.h"\nbfGroup Lamp { bit on; };\nmake_device(Lamp, lamp, 0x40000000);\n'
    path.write_text(f"{head}struct when {{ int a, b; }};\nvoid set(struct when w) {{ lamp->on = w.a; }}\n")
    result = run(path, "--verify")
    assert result.exit_code == 1
    assert "nothing was compared" in result.output


def test_an_interrupt_routine_may_be_named(driver, tmp_path):
    """A field that a named routine writes is shared: marked, its register is changed in critical sections."""
    head = '#include "edgewright_hal.h"\nbfGroup Lamp { bit on; uint4 mode; bit irq; };\n'
    code = "void tick(void) { lamp->irq = 0; }\nvoid set(uint8_t n) { lamp->mode = n; }\n"
    driver.write_text(f"{head}make_device(Lamp, lamp, 0x40000000);\n{code}")
    succeed(driver, "-o", tmp_path / "out", "--max-map", "4")
    assert "HAL_ENTER_CRITICAL();" not in (tmp_path / "out" / "timer_hal.h").read_text()
    refused = run(driver, "--max-map", "4", "--isr", "tick")
    assert refused.exit_code == 1 and "'irq' is written by an interrupt routine" in refused.output
    driver.write_text(driver.read_text().replace("bit irq;", "bit shared_with_isr irq;"))
    succeed(driver, "-o", tmp_path / "marked", "--max-map", "4", "--isr", "tick")
    assert "HAL_ENTER_CRITICAL();" in (tmp_path / "marked" / "timer_hal.h").read_text()
    assert run(driver, "--isr", "tock").exit_code == 1


def test_c_that_does_not_compile_is_refused_as_json(driver):
    driver.write_text(DRIVER.replace("return t->count;", "return t->counts;"))
    result = run(driver, "--json")
    assert result.exit_code == 1
    (refused,) = json.loads(result.output)["refused"]
    assert refused["line"] == 23 and "no member named 'counts'" in json.dumps(refused)
