"""Firmware for two cores: each runs a lane on QEMU's mps2-an521; else one core does everything."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright import samples
from edgewright.board.machine import machine_for
from edgewright.board.qemu import has_qemu
from edgewright.cli import main
from edgewright.emit import TARGETS, emit
from edgewright.emit.firmware import Emulator, measure
from edgewright.emit.library import Library
from edgewright.emit.verify import verify
from edgewright.errors import EdgewrightError
from edgewright.network import random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import compare
from tests.helpers.counts import seeds
from tests.helpers.random_networks import networks
from tests.helpers.tools import needs_board, obstacle
from tests.program.test_lanes import convs, drawn, shared

TWO = machine_for(TARGETS["cortex-m33"], 2)
REASON = obstacle("cortex-m33") or ("" if has_qemu(TWO) else "qemu-system-arm is not installed")
on_two_cores = pytest.mark.skipif(bool(REASON), reason=REASON or "can be run")
MANY = len(seeds("DUAL_CORE", 60 if os.environ.get("EDGEWRIGHT_THOROUGH") else 2))


def library(target: str = "cortex-m33") -> Library:
    network = convs(size=6, channels=4)
    return emit(shared(network), TARGETS[target], network)


@on_two_cores
@settings(max_examples=MANY)
@given(data=st.data(), network=networks(), target=st.sampled_from(("cortex-m33", "cortex-m0plus")))
def test_two_cores_compute_what_the_reference_does(data, network, target):
    made = drawn(data, network, lanes=2)
    inputs = random_inputs(network, data.draw(st.integers(0, 9)))
    measured = measure(emit(made, TARGETS[target], network), inputs, emulator=Emulator.QEMU)
    expected = execute(network, inputs)
    assert measured.emulator == "qemu mps2-an521 (2 cores)"
    assert measured.ram_linked == sum(made.arenas.values())
    assert compare(network, measured.outputs, expected).passes
    for name in network.outputs:
        if not network.tensors[name].dtype.is_float:
            np.testing.assert_array_equal(measured.outputs[name], expected[name])


@on_two_cores
def test_both_cores_take_part_and_meet():
    """Every run is the same, each core does about half, and without barriers one reads what is not there yet."""
    two = library()
    inputs = random_inputs(two.network)
    one = measure(two, inputs, emulator=Emulator.QEMU, profile=True)
    again = measure(two, inputs, emulator=Emulator.QEMU)
    assert one.instructions == again.instructions
    assert one.instructions is not None and one.critical_path is not None
    assert one.instructions / 2 < one.critical_path < 0.8 * one.instructions
    file = f"{two.name}.c"
    alone = str(two.files[file]).replace(f"{two.name}_lanes_meet(lane, lanes);", "")
    broken = measure(replace(two, files={**two.files, file: alone}), inputs, emulator=Emulator.QEMU)
    assert not np.array_equal(broken.outputs["dense"], one.outputs["dense"])
    assert one.stack_bytes is not None and one.stack_bound is not None and one.stack_bytes <= one.stack_bound


@on_two_cores
def test_a_stack_that_is_too_small_is_found_on_either_core():
    with pytest.raises(EdgewrightError, match="stack overflow"):
        measure(library(), random_inputs(convs(size=6, channels=4)), stack=256, emulator=Emulator.QEMU)


def test_one_core_does_everything_where_the_emulator_has_no_other():
    needs_board("cortex-m33", Emulator.UNICORN)
    two = library()
    inputs = random_inputs(two.network)
    measured = measure(two, inputs, emulator=Emulator.UNICORN, profile=True)
    assert measured.emulator == "unicorn mps2-an521 (1 core)" and measured.critical_path is None
    assert set(measured.stages) == set(two.stages)
    assert compare(two.network, measured.outputs, execute(two.network, inputs)).passes


def test_threads_of_this_machine_share_what_no_emulated_machine_does():
    """There are not two Cortex-M4, nor three Cortex-M33: one core does everything there, and threads are checked."""
    assert machine_for(TARGETS["cortex-m4"], 2).cores == machine_for(TARGETS["cortex-m33"], 3).cores == 1
    needs_board("cortex-m4")
    checks = verify(library("cortex-m4"), count=1).checks
    assert [check.where.split("(")[-1] for check in checks] == ["2 threads)", "1 core)"]


@pytest.mark.slow
@on_two_cores
def test_the_command_line_says_how_many_cores_ran_it(tmp_path):
    model = samples.write("stahl_running_example", tmp_path)
    arguments = ["--lanes", "2", "--board", "mps2-an521", "-o", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(main, ["compile", str(model), *arguments])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["verified"] and found["emulator"] == "qemu mps2-an521 (2 cores)"
    assert found["critical_path"] < found["instructions"]
