"""`edgewright cluster run`, `try` and `node`: plans at work on devices, or on processes of this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from ..cluster.description import read_cluster
from ..cluster.devices import GIGABIT, PI4_MACS, Cluster, equal_devices
from ..cluster.goal import ClusterGoal
from ..cluster.node.addresses import PORT
from ..cluster.node.credentials import load_credentials
from ..cluster.plan_file import load_cluster_plan
from ..cluster.planning import checked_cluster
from ..cluster.running.coordinator import Coordinator, Replan
from ..cluster.running.emulated import emulated_outputs
from ..cluster.running.keys import make_keys
from ..cluster.running.local_nodes import LocalNodes
from ..cluster.running.metrics import prometheus
from ..cluster.running.monitor import Monitor
from ..cluster.running.preparation import Preparation
from ..cluster.running.prepared_plan import PreparedPlan
from ..cluster.wire import FLOAT16_SHARE
from ..emit import Options
from ..emit.judge import judge
from ..errors import Infeasible, InputError, RunError
from ..files import FolderMode, output_folder
from ..network import Network, Shape, random_inputs
from ..network.reference import compare
from ..text import duration
from .cluster_frames import Comparison, RunOutputs, Stream, frames_of, random_frames
from .cluster_live import comparison, difference_to_dict
from .common import console, print_json, print_notes, read_model, shown, working

HOST = "host"  # the board that this machine is
SLACK = 2.0  # times the error that 16 bits on the wire had on random inputs


def try_cluster(
    model: Path,
    devices: int | None,
    file: Path | None,
    strategy: str,
    frames: int,
    board: str | None,
    float16: bool,
    lost: tuple[str, ...],
    page: Path | None,
    shapes: dict[str, Shape],
    as_json: bool,
) -> None:
    if file is not None and devices is not None:
        raise InputError("--cluster says which devices there are; leave --devices out")
    cluster = _here(checked_cluster(read_cluster(file)) if file else equal_devices(devices or 4, PI4_MACS, GIGABIT))
    names = [device.name for device in cluster.devices if device.name != cluster.gateway]
    for name in lost:
        if name not in names:
            raise InputError(f"--lose {name}: expected one of {', '.join(names)}")
    network = read_model(model, shapes)
    share = FLOAT16_SHARE if float16 else 1.0
    if board is not None:
        if lost or float16:
            raise InputError("with --board parts run under QEMU, and nothing is sent; leave --lose and --float16 out")
        _emulate(network, model, _here(cluster, board), strategy, as_json)
        return
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="edgewright-")))
        keys = folder / "keys"
        make_keys(cluster.name, list(cluster.device_named), cluster.gateway, keys)
        nodes = held.enter_context(LocalNodes(keys, names, folder / "nodes"))
        coordinator = Coordinator(load_credentials(keys / cluster.gateway), "127.0.0.1:0", _say)
        held.callback(coordinator.close)
        addresses = {**nodes.addresses, cluster.gateway: f"127.0.0.1:{coordinator.port}"}
        cluster = _addressed(cluster, addresses)
        preparation = Preparation(
            network, cluster, ClusterGoal(), keys, folder / "built", strategy=strategy, wire_share=share
        )
        with working(f"dividing {network.name} over {len(cluster.devices)} devices"):
            planned = preparation.planner.realised(preparation.planner.plan(cluster, strategy))
        assert planned.deployment is not None
        with working("compiling the parts"):
            plans = [preparation.whole(planned.deployment)]
        plans += _spares(preparation, lost)
        coordinator.connect(addresses)
        coordinator.prepare(plans)
        events = {(n + 1) * frames // (len(lost) + 1): nodes.processes[name].kill for n, name in enumerate(lost)}
        comparison = Comparison(model, network, SLACK * (planned.wire_error or 0.0))
        outputs = RunOutputs(page=page, as_json=as_json)
        stream = Stream(coordinator, network, _replanning(preparation), outputs, comparison, events)
        stream.run(random_frames(network, frames))


def run_cluster(
    folder: Path,
    keys: Path,
    inputs: tuple[Path, ...],
    frames: int | None,
    model: Path | None,
    listen: str | None,
    spares: bool,
    output: Path | None,
    page: Path | None,
    statistics: Path | None,
    metrics: int | None,
    as_json: bool,
) -> None:
    saved = load_cluster_plan(folder)
    cluster, deployment = saved.cluster, saved.planned.deployment
    (network,) = deployment.networks
    if unknown := [device.name for device in cluster.devices if not device.board]:
        raise InputError(
            f"device '{unknown[0]}' has no board, so nobody knows what to compile for; give one in the cluster file, "
            f'such as board = "raspberry-pi-4" ("{HOST}" for machines like this one), and plan again'
        )
    given = frames_of(network, inputs, frames)
    with ExitStack() as held:
        home = load_credentials(keys / cluster.gateway)
        coordinator = Coordinator(home, listen or f"0.0.0.0:{PORT}", _say)
        held.callback(coordinator.close)
        if metrics is not None:
            held.enter_context(prometheus(metrics, Monitor(coordinator).status))
        addresses = {device.name: device.address_or_name for device in cluster.devices}
        coordinator.connect({name: addresses[name] for name in cluster.device_named})
        preparation = Preparation(
            network,
            cluster,
            ClusterGoal(),
            keys,
            folder / "built",
            strategy=saved.strategy,
            wire_share=saved.wire_share,
        )
        with working("compiling the parts"):
            plans = [preparation.whole(saved.planned)]
        if spares:
            plans += _spares(preparation, [name for name in plans[0].devices if name != cluster.gateway])
        with working("handing out plans and libraries"):
            coordinator.prepare(plans)
        if output:
            held.enter_context(output_folder(output, FolderMode.UNDO))
        comparison = Comparison(model, network) if model else None
        outputs = RunOutputs(output, page, statistics, as_json)
        Stream(coordinator, network, _replanning(preparation), outputs, comparison).run(given)


def _emulate(network: Network, model: Path, cluster: Cluster, strategy: str, as_json: bool) -> None:
    """One frame through parts that are compiled for another core."""
    with tempfile.TemporaryDirectory(prefix="edgewright-") as name:
        folder = Path(name)
        make_keys(cluster.name, list(cluster.device_named), cluster.gateway, folder / "keys")
        preparation = Preparation(network, cluster, ClusterGoal(), folder / "keys", folder / "built", strategy=strategy)
        with working(f"dividing {network.name} over {len(cluster.devices)} devices"):
            planned = preparation.planner.realised(preparation.planner.plan(cluster, strategy)).deployment
        assert planned is not None
        with working("compiling the parts"):
            plan = preparation.whole(planned)
        frame = random_inputs(network)
        with working("running a frame under QEMU"):
            found = emulated_outputs(plan, planned.deployment, cluster, preparation.builder, frame)
        truth = judge(model, network, Options())
        worst = compare(network, found, truth.run(frame))
    board = cluster.devices[0].board
    if as_json:
        print_json({"board": board, "frames": 1, "reference": truth.name, **difference_to_dict(worst)})
    else:
        console.print(
            f"1 frame on {len(cluster.devices)} × {shown(board)}, under QEMU: {comparison(worst, truth.name)}"
        )
    if not worst.passes:
        raise RunError(f"results are not those of {truth.name}: {worst}")


def _here(cluster: Cluster, board: str = HOST) -> Cluster:
    """The cluster with this board, or this machine, for each device: what is compiled runs here, and limits stay."""
    devices = tuple(replace(device, board=board) for device in cluster.devices)
    return replace(cluster, name="trial", devices=devices)


def _addressed(cluster: Cluster, addresses: dict[str, str]) -> Cluster:
    return replace(cluster, devices=tuple(replace(each, address=addresses[each.name]) for each in cluster.devices))


def _spares(preparation: Preparation, names: Iterable[str]) -> list[PreparedPlan]:
    """A plan for the loss of each of these devices; a note where the others cannot do it."""
    made, notes = [], []
    for name in names:
        with working(f"planning for the loss of '{name}'"):
            try:
                made.append(preparation.without(name))
            except Infeasible as error:
                notes.append(str(error))
    print_notes(notes)
    return made


def _replanning(preparation: Preparation) -> Replan:
    """Makes plans for the devices that are left, and says beforehand how long that takes."""

    def planned(devices: frozenset[str]) -> PreparedPlan:
        if expected := preparation.expected_seconds:
            _say(f"planning for {', '.join(sorted(devices))} takes about {duration(expected)}")
        return preparation.of_devices(devices)

    return planned


def _say(text: str) -> None:
    print_notes([text])
