"""Parts for aarch64 under QEMU's user mode: object files of the libraries that nodes get, one frame through all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from edgewright.board.toolchain import toolchain
from edgewright.cluster.devices import equal_devices
from edgewright.cluster.goal import ClusterAim, ClusterGoal
from edgewright.cluster.running.emulated import emulated_outputs, why_not_emulated
from edgewright.cluster.running.keys import make_keys
from edgewright.cluster.running.preparation import Preparation
from edgewright.errors import EdgewrightError
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import compare
from edgewright.platform import load_board
from edgewright.platform.target import target_of
from tests.cluster.test_plans import convolutions

AARCH64 = 183  # of ELF files


def prepared(network: Network, board: str, folder: Path, strategy: str):
    cluster = equal_devices(2)
    cluster = replace(cluster, devices=tuple(replace(each, board=board) for each in cluster.devices))
    keys = folder / "keys"
    make_keys("trial", list(cluster.device_named), cluster.gateway, keys)
    preparation = Preparation(network, cluster, ClusterGoal(ClusterAim.BALANCE), keys, folder / "built")
    planned = preparation.planner.realised(preparation.planner.plan(cluster, strategy)).deployment
    assert planned is not None
    return preparation.whole(planned), planned.deployment, cluster, preparation.builder


@pytest.mark.parametrize("board", ["host", pytest.param("raspberry-pi-4", marks=pytest.mark.slow), "raspberry-pi-5"])
def test_a_frame_through_all_devices_is_right_on_their_core(board: str, tmp_path: Path):
    if board != "host":
        if why := why_not_emulated():
            pytest.skip(why)
        try:
            toolchain(target_of(load_board(board)))
        except EdgewrightError as error:
            pytest.skip(str(error))
    network = convolutions(3, 8, 8, size=8, classes=10)
    frame = random_inputs(network, 1)
    made = prepared(network, board, tmp_path, "hybrid")
    found = emulated_outputs(*made, frame)
    assert compare(network, found, execute(network, frame)).passes
    if board != "host":
        for path in made[0].libraries.values():
            assert int.from_bytes(path.read_bytes()[18:20], "little") == AARCH64
