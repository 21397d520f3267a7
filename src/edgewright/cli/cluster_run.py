"""`edgewright cluster run`, `try` and `node`: execute plans on devices or on local processes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
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

HOST = "host"  # the board that stands for this machine
SLACK = 2.0  # times the error that 16-bit transfers caused on random inputs


@dataclass(frozen=True, slots=True)
class ClusterTryOptions:
    """The options of `edgewright cluster try`, as parsed."""

    model: Path
    devices: int | None
    file: Path | None
    strategy: str
    frames: int
    board: str | None
    float16: bool
    lost: tuple[str, ...]
    page: Path | None
    shapes: dict[str, Shape]
    as_json: bool


def try_cluster(options: ClusterTryOptions) -> None:
    if options.file is not None and options.devices is not None:
        raise InputError("--cluster says which devices there are; leave --devices out")
    cluster = _here(
        checked_cluster(read_cluster(options.file))
        if options.file
        else equal_devices(options.devices or 4, PI4_MACS, GIGABIT)
    )
    names = [device.name for device in cluster.devices if device.name != cluster.gateway]
    for name in options.lost:
        if name not in names:
            raise InputError(f"--lose {name}: expected one of {', '.join(names)}")
    network = read_model(options.model, options.shapes)
    share = FLOAT16_SHARE if options.float16 else 1.0
    if options.board is not None:
        if options.lost or options.float16:
            raise InputError("with --board parts run under QEMU, and nothing is sent; leave --lose and --float16 out")
        _emulate(network, options.model, _here(cluster, options.board), options.strategy, options.as_json)
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
            network, cluster, ClusterGoal(), keys, folder / "built", strategy=options.strategy, wire_share=share
        )
        with working(f"dividing {network.name} over {len(cluster.devices)} devices"):
            planned = preparation.planner.realised(preparation.planner.plan(cluster, options.strategy))
        assert planned.deployment is not None
        with working("compiling the parts"):
            plans = [preparation.whole(planned.deployment)]
        plans += _spares(preparation, options.lost)
        coordinator.connect(addresses)
        coordinator.prepare(plans)
        events = {
            (n + 1) * options.frames // (len(options.lost) + 1): nodes.processes[name].kill
            for n, name in enumerate(options.lost)
        }
        comparison = Comparison(options.model, network, SLACK * (planned.wire_error or 0.0))
        outputs = RunOutputs(page=options.page, as_json=options.as_json)
        stream = Stream(coordinator, network, _replanning(preparation), outputs, comparison, events)
        stream.run(random_frames(network, options.frames))


@dataclass(frozen=True, slots=True)
class ClusterRunOptions:
    """The options of `edgewright cluster run`, as parsed."""

    folder: Path
    keys: Path
    inputs: tuple[Path, ...]
    frames: int | None
    model: Path | None
    listen: str | None
    spares: bool
    output: Path | None
    page: Path | None
    statistics: Path | None
    metrics: int | None
    as_json: bool


def run_cluster(options: ClusterRunOptions) -> None:
    saved = load_cluster_plan(options.folder)
    cluster, deployment = saved.cluster, saved.planned.deployment
    (network,) = deployment.networks
    if unknown := [device.name for device in cluster.devices if not device.board]:
        raise InputError(
            f"device '{unknown[0]}' has no board, so nobody knows what to compile for; give one in the cluster file, "
            f'such as board = "raspberry-pi-4" ("{HOST}" for machines like this one), and plan again'
        )
    given = frames_of(network, options.inputs, options.frames)
    with ExitStack() as held:
        home = load_credentials(options.keys / cluster.gateway)
        coordinator = Coordinator(home, options.listen or f"0.0.0.0:{PORT}", _say)
        held.callback(coordinator.close)
        if options.metrics is not None:
            held.enter_context(prometheus(options.metrics, Monitor(coordinator).status))
        addresses = {device.name: device.address_or_name for device in cluster.devices}
        coordinator.connect({name: addresses[name] for name in cluster.device_named})
        preparation = Preparation(
            network,
            cluster,
            ClusterGoal(),
            options.keys,
            options.folder / "built",
            strategy=saved.strategy,
            wire_share=saved.wire_share,
        )
        with working("compiling the parts"):
            plans = [preparation.whole(saved.planned)]
        if options.spares:
            plans += _spares(preparation, [name for name in plans[0].devices if name != cluster.gateway])
        with working("handing out plans and libraries"):
            coordinator.prepare(plans)
        if options.output:
            held.enter_context(output_folder(options.output, FolderMode.UNDO))
        comparison = Comparison(options.model, network) if options.model else None
        outputs = RunOutputs(options.output, options.page, options.statistics, options.as_json)
        Stream(coordinator, network, _replanning(preparation), outputs, comparison).run(given)


def _emulate(network: Network, model: Path, cluster: Cluster, strategy: str, as_json: bool) -> None:
    """Runs one frame under QEMU through parts that are compiled for another core."""
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
            outputs = emulated_outputs(plan, planned.deployment, cluster, preparation.builder, frame)
        truth = judge(model, network, Options())
        worst = compare(network, outputs, truth.run(frame))
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
    """The cluster with every device's board replaced by this one, or by this machine; limits stay."""
    devices = tuple(replace(device, board=board) for device in cluster.devices)
    return replace(cluster, name="trial", devices=devices)


def _addressed(cluster: Cluster, addresses: dict[str, str]) -> Cluster:
    return replace(cluster, devices=tuple(replace(each, address=addresses[each.name]) for each in cluster.devices))


def _spares(preparation: Preparation, names: Iterable[str]) -> list[PreparedPlan]:
    """A plan for the loss of each of these devices; notes the losses that the other devices cannot cover."""
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
    """Returns a function that plans for the remaining devices and announces how long that takes."""

    def planned(devices: frozenset[str]) -> PreparedPlan:
        if expected := preparation.expected_seconds:
            _say(f"planning for {', '.join(sorted(devices))} takes about {duration(expected)}")
        return preparation.of_devices(devices)

    return planned


def _say(text: str) -> None:
    print_notes([text])
