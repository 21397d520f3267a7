"""Four networks in one arena on the virtual board and on this machine: random interleavings, bit by bit.

    python benchmarks/application_board.py [--board 1000] [--host 10000] [--json FILE]

kws, ic, vww and ad of MLPerf Tiny in $EDGEWRIGHT_CORPUS/models, exclusive, for a Cortex-M4. An interleaving is four
runs in random order with random inputs. Ends with status 1 when a result is wrong, or when RAM as linked is not that
of the largest network and the words that say who runs.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import click

from edgewright.application.draft import load_application
from edgewright.application.library import emit_application
from edgewright.application.search import JointSearch
from edgewright.emit.deployment.harness import TrialScript
from edgewright.emit.deployment.trial import LibraryTrial, TrialResult

MODELS = {
    "kws": "mlperf_kws_ref_int8",
    "ic": "mlperf_ic_resnet8_int8",
    "vww": "mlperf_vww96_int8",
    "ad": "mlperf_ad01_int8",
}
RUNS = 4  # of an interleaving
AT_ONCE = 100  # interleavings of one firmware's run


@click.command()
@click.option("--board", default=1000, show_default=True, help="Interleavings on the virtual board.")
@click.option("--host", default=10_000, show_default=True, help="Interleavings on this machine.")
@click.option("--json", "path", type=click.Path(path_type=Path))
def main(board: int, host: int, path: Path | None) -> None:
    corpus = os.environ.get("EDGEWRIGHT_CORPUS")
    if not corpus:
        raise click.UsageError("EDGEWRIGHT_CORPUS names no folder with models.")
    entries = "".join(
        f'[[network]]\nname = "{name}"\nfile = "{Path(corpus).resolve()}/models/{model}.tflite"\n'
        for name, model in MODELS.items()
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "app.toml"
        file.write_text(f'target = "cortex-m4"\n{entries}')
        search = JointSearch(load_application(file))
    plan = search.least
    library = emit_application(search.application, plan.layout)
    trial = LibraryTrial(library)
    separate = sum(planner.least.peak_bytes for planner in search.planners.values())
    largest = max(planner.least.peak_bytes for planner in search.planners.values())
    click.echo(f"planned {plan.peak_bytes}, largest alone {largest}, separate arenas {separate} bytes")
    linked, instructions, start, results = set(), 0, time.monotonic(), []
    for seed in range(0, board, AT_ONCE):
        found = trial.run_on_board(TrialScript(min(AT_ONCE, board - seed), RUNS, seed + 1), timeout_s=3600)
        linked.add(found.ram_linked)
        instructions += found.instructions
        results.append(found.result)
    _print("virtual board", results, time.monotonic() - start)
    start = time.monotonic()
    results.append(trial.run(TrialScript(host, RUNS)))
    _print("this machine", results[-1:], time.monotonic() - start)
    wrong = [text for result in results for text in result.wrong]
    is_exact = linked <= {largest + library.state_bytes} and plan.peak_bytes == largest
    click.echo(f"RAM as linked {sorted(linked)} bytes, of which {library.state_bytes} say who runs")
    if path is not None:
        figures = {
            "peak_bytes": plan.peak_bytes,
            "separate_bytes": separate,
            "ram_linked": sorted(linked),
            "board_runs": sum(result.runs for result in results[:-1]),
            "host_runs": results[-1].runs,
            "instructions": instructions,
            "wrong": wrong,
        }
        path.write_text(json.dumps(figures, indent=1) + "\n")
    sys.exit(1 if wrong or not is_exact else 0)


def _print(where: str, results: list[TrialResult], seconds: float) -> None:
    runs, wrong = sum(result.runs for result in results), sum(len(result.wrong) for result in results)
    click.echo(f"{where}: {runs} runs, {wrong} wrong, {seconds:.0f} s")


if __name__ == "__main__":
    main()
