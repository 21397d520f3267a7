"""The design flow on smartwatch windows: from data to verified firmware with three scenarios, killed now and then.

    python benchmarks/flow.py geotec_har_sw_w64.npz [--candidates 300] [--kill 60 --kill 900] [-o out/flow]

Subjects 19 to 23 are held out. With --kill the flow is ended (SIGKILL) so many seconds after a start, and started
again. Exit status 1 where it takes more than 30 minutes, or ends without three scenarios verified on the virtual board.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from search_har import TASK

FLOW = """
name = "har"
task = "har.toml"

[[selection]]
name = "accurate"
require = {accuracy = 1.0}

[[selection]]
name = "balanced"
require = {accuracy = 0.5, throughput = 0.25, memory = 0.25}

[[selection]]
name = "saving"
require = {throughput = 0.5, memory = 0.5}

[adapt]
start = "balanced"

[[rule]]
signal = "battery"
below = 0.2
until = 0.3
request = "saving"

[[rule]]
signal = "motion"
above = 3.0
until = 2.0
request = "accurate"
"""
MOST_S = 1800
LEAST_SCENARIOS = 3


def run(folder: Path, kills: list[float]) -> tuple[float, dict]:
    """Seconds of all starts together, and what the last one said."""
    words = [sys.executable, "-m", "edgewright", "flow", str(folder / "flow.toml"), "-o", str(folder / "out"), "--json"]
    seconds = 0.0
    for limit in [*kills, None]:
        began = time.perf_counter()
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            seconds += time.perf_counter() - began
            print(f"killed after {limit:g} s, with {', '.join(stages(folder)) or 'no stage'} complete", flush=True)
            continue
        seconds += time.perf_counter() - began
        if process.returncode:
            sys.exit(f"the flow failed with status {process.returncode}")
        return seconds, json.loads(output)
    raise AssertionError("the last start has no limit")


def stages(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in (folder / "out").glob("*/stage.json"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--candidates", type=int, default=300)
    parser.add_argument("--kill", type=float, action="append", default=[])
    parser.add_argument("-o", "--output", type=Path, default=Path("out/flow"))
    given = parser.parse_args()
    folder = given.output
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "har.toml").write_text(TASK.format(candidates=given.candidates, data=given.data.resolve()))
    (folder / "flow.toml").write_text(FLOW)
    seconds, outcome = run(folder, given.kill)
    firmware, board = outcome["firmware"], outcome["firmware"].get("board", {})
    scenarios = firmware.get("scenarios", [])
    print(f"{seconds:.0f} s: {outcome['points']} networks, {outcome['augmented_points']} points")
    for one in outcome["selections"]:
        point, before = one["selected"], one["without_augmented_points"]
        was = f"; without other manners {before['name']}" if one["is_better"] and before else ""
        print(
            f"  {one['name']}: {point['name']}, macro-F1 {point['macro_f1']:.1%} "
            f"(held out {point['held_out_macro_f1']:.1%}), {point['ram_bytes']} B, "
            f"{point['throughput']:.0f} frames/s{was}"
        )
    print(
        f"  firmware: {', '.join(scenarios)} in {firmware['ram_bytes']} B of RAM, {board.get('frames', 0)} frames with "
        f"{board.get('switches', 0)} switches on the virtual board"
    )
    is_quick = seconds <= MOST_S
    is_whole = firmware["verified"] and board.get("switches", 0) > 0 and len(scenarios) >= LEAST_SCENARIOS
    return 0 if is_quick and is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
