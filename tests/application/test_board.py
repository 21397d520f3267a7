"""Applications on the virtual board: one arena as linked, random interleavings, interrupts of a timer."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgewright import samples
from edgewright.application.draft import load_application
from edgewright.application.library import AppLibrary, emit_application
from edgewright.application.search import JointSearch
from edgewright.emit.deployment.harness import TrialScript
from edgewright.emit.deployment.trial import LibraryTrial
from edgewright.program import faults
from tests.application.judge import Interleaving
from tests.helpers.tools import needs, on_board

pytestmark = on_board


def library_of(folder: Path, *networks: str, relation: str = "", plain: str = "true") -> AppLibrary:
    """An application of some networks of the sample, for a Cortex-M4."""
    samples.write_application("tiny_application", folder)
    entries = "".join(f'[[network]]\nname = "{name}"\nfile = "{name}.onnx"\nplain = {plain}\n' for name in networks)
    (folder / "few.toml").write_text(f'target = "cortex-m4"\n{entries}{relation}')
    return emit_application(app := load_application(folder / "few.toml"), JointSearch(app).least.layout)


def preempts(points: str) -> str:
    return f'[[relation]]\nkind = "preempts"\nnetworks = ["wake", "detect"]\npoints = "{points}"\n'


def test_exclusive_networks_take_the_ram_of_the_largest_and_one_word(tmp_path: Path) -> None:
    library = library_of(tmp_path, "wake", "detect")
    largest = max(plan.peak_bytes for plan in library.layout.problem.plans.values())
    assert library.layout.peak_bytes == largest and library.state_bytes == 4
    assert "poll" not in str(library.files["app.h"])
    found = LibraryTrial(library).run_on_board(TrialScript(3, 4))
    assert found.result.wrong == () and (found.result.runs, found.result.refused) == (12, 0)
    assert found.ram_linked == largest + library.state_bytes


@pytest.mark.parametrize("points", ["stages", "rows"])
def test_interrupted_networks_are_right_on_the_board(points: str, tmp_path: Path) -> None:
    plain = "true" if points == "stages" else "false"  # whole layers, or layers in rows
    library = library_of(tmp_path, "wake", "detect", relation=preempts(points), plain=plain)
    for plan in library.deployment.plans.values():
        assert not list(faults(plan))
    assert not list(Interleaving(library.layout, 1, library.deployment).run(60))
    found = LibraryTrial(library).run_on_board(TrialScript(12, 4))
    assert found.result.wrong == () and found.result.nested
    assert found.ram_linked == library.layout.peak_bytes + library.state_bytes


@pytest.mark.parametrize("points", ["stages", "rows", "anywhere"])
def test_a_timer_interrupts_where_it_may(points: str, tmp_path: Path) -> None:
    needs("qemu-system-arm")  # Unicorn has no timer
    library = library_of(tmp_path, "wake", "detect", relation=preempts(points), plain="false")
    found = LibraryTrial(library).run_on_board(TrialScript(4, 4, ticks=1_500_000), timer="wake")
    assert found.result.wrong == () and found.result.nested


@pytest.mark.slow
@pytest.mark.parametrize("points", ["stages", "rows", "anywhere"])
def test_keywords_interrupt_visual_wake_words_by_a_timer(points: str, tmp_path: Path, corpus_folder: Path) -> None:
    """At random times, as a firmware would: a few million instructions apart, every result bit by bit."""
    needs("qemu-system-arm")
    models = corpus_folder.resolve() / "models"
    files = {"kws": "mlperf_kws_ref_int8.tflite", "vww": "mlperf_vww96_int8.tflite"}
    entries = "".join(f'[[network]]\nname = "{n}"\nfile = "{models / file}"\n' for n, file in files.items())
    relation = preempts(points).replace("wake", "kws").replace("detect", "vww")
    (tmp_path / "app.toml").write_text(f'board = "nucleo-f446re"\n{entries}{relation}')
    search = JointSearch(load_application(tmp_path / "app.toml", pull_input=True))
    library = emit_application(search.application, search.least.layout)
    found = LibraryTrial(library).run_on_board(TrialScript(4, 5, seed=3, ticks=40_000_000), timer="kws")
    assert found.result.wrong == () and found.result.nested >= 10
    assert found.ram_linked == library.layout.peak_bytes + library.state_bytes
