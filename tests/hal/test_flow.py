"""The flow for hardware that exists: a vendor's map, a driver in another folder, and code that compiles by itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from click.testing import CliRunner

from edgewright.cli.main import main
from edgewright.hal.design_flow import analyse
from edgewright.hal.generate import file_names, generate
from edgewright.hal.layout_choice import chosen_design

SVD = Path(__file__).parent / "svd" / "nrf52_timer.svd"
DRIVER = """
#include "timer0.h"
#include "limits/limits.h"
void timer_start(uint32_t n, uint32_t ticks)
{
    timer0->PRESCALER.PRESCALER = LIMIT;
    timer0->CC[n & 3u] = ticks;
    timer0->TASKS_START = 1;
}
"""


def test_the_map_of_a_vendor_and_a_driver_elsewhere(tmp_path, monkeypatch):
    """Headers come from folders given with -I, in the driver and in what is verified; the output needs none of them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src" / "limits").mkdir(parents=True)
    (tmp_path / "src" / "limits" / "limits.h").write_text("#define LIMIT 4u\n")
    (tmp_path / "src" / "driver.c").write_text(DRIVER)
    made = CliRunner().invoke(main, ["hal", "--from-svd", str(SVD), "-o", "maps/timer"])
    assert made.exit_code == 0, made.output
    lock = Path("maps/timer/timer0.lock.json")
    before = lock.read_bytes()
    asked = ["hal", "src/driver.c", "-I", "maps/timer", "--lock", str(lock), "-o", "out"]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    assert lock.read_bytes() == before
    assert {"driver.c", "timer0.h", "driver_hal.h", "edgewright_hal.h"} <= {path.name for path in Path("out").iterdir()}
    if shutil.which("cc"):
        subprocess.run(["cc", "-Wall", "-Werror", "-c", "out/driver.c", "-o", "driver.o"], check=True)


def test_headers_keep_the_paths_that_they_are_included_by(tmp_path):
    for folder in ("drivers", "drivers/regs", "shared/regs"):
        (tmp_path / folder).mkdir(parents=True)
    head = '#pragma once\n#include "edgewright_hal.h"\n'
    (tmp_path / "drivers" / "regs" / "a.h").write_text(head + "bfGroup A { bit x; };\nmake_device(A, a, 0x40000000);\n")
    (tmp_path / "shared" / "regs" / "b.h").write_text(head + "bfGroup B { bit x; };\nmake_device(B, b, 0x40001000);\n")
    driver = tmp_path / "drivers" / "driver.c"
    driver.write_text('#include "regs/a.h"\n#include <regs/b.h>\nvoid f(void) { a->x = 1; b->x = 1; }\n')
    analysis = analyse([driver], [tmp_path / "shared"])
    assert sorted(file_names(analysis.source).values()) == ["driver.c", "regs/a.h", "regs/b.h"]
    files = generate(chosen_design(analysis, "paper"), "driver")
    assert '#include "../driver_hal.h"' in files["regs/a.h"] and '#include "../driver_hal.h"' in files["regs/b.h"]


def test_what_the_compiler_refuses_is_told_by_its_place(tmp_path):
    """libclang takes what GCC and Zig's target do not; the command line of the compiler is not shown."""
    driver = tmp_path / "driver.c"
    driver.write_text(
        '#include "edgewright_hal.h"\nbfGroup A { bit x; };\nmake_device(A, a, 0x40000000);\n'
        "#if !defined(EDGEWRIGHT_HAL_ANALYSIS)\nvoid g(void) { lost = 1; }\n#endif\nvoid f(void) { a->x = 1; }\n"
    )
    done = CliRunner().invoke(main, ["hal", str(driver), "--verify"])
    assert done.exit_code == 1 and "driver.c:" in done.output and "lost" in done.output
    assert "-ffunction-sections" not in done.output
