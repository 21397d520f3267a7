"""`edgewright cluster run`, `try` and `node`: plans at work on devices, or on processes of this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from ..cluster.description import read_cluster
from ..cluster.devices import GIGABIT, PI4_MACS, Cluster, equal_devices
from ..cluster.goal import ClusterGoal
from ..cluster.node.connections import PORT
from ..cluster.node.credentials import load_credentials
from ..cluster.plan_file import load_cluster_plan
from ..cluster.planning import checked_cluster
from ..cluster.running.coordinator import Coordinator
from ..cluster.running.emulated import emulated_outputs
from ..cluster.running.keys import make_keys
from ..cluster.running.local_nodes import LocalNodes
from ..cluster.running.metrics import json_lines, prometheus
from ..cluster.running.monitor import ClusterStatus, Monitor, recoveries_to_list, recovery_words
from ..cluster.running.preparation import Preparation
from ..cluster.running.prepared_plan import PreparedPlan
from ..cluster.wire import FLOAT16_SHARE
from ..emit import Options
from ..emit.inputs import load_inputs
from ..emit.judge import judge
from ..errors import Infeasible, InputError, RunError
from ..files import made_folder, write_atomic
from ..network import Array, Network, Shape, random_inputs
from ..network.reference import OutputDifference, badness, compare, to_file_layout
from ..report.cluster_run_page import RunHistory, cluster_run_page
from .cluster_live import comparison, difference_to_dict, following, run_figures, status_table
from .common import console, print_json, print_notes, print_written, read_model, shown, working

HOST = "host"  # the board that this machine is
SLACK = 2.0  # times the error that 16 bits on the wire had on random inputs
SAMPLES = 4  # random frames, which come again and again
Inputs = dict[str, Array]


@dataclass(frozen=True)
class _Outcome:
    """A run that is over."""

    status: ClusterStatus
    worst: OutputDifference | None  # of all results, where they were compared
    reference: str
    coordinator: Coordinator
    history: RunHistory


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
        given = _random_frames(network, frames)
        events = {(n + 1) * frames // (len(lost) + 1): nodes.processes[name].kill for n, name in enumerate(lost)}
        slack = SLACK * (planned.wire_error or 0.0)
        outcome = _carried_out(coordinator, given, preparation, model, network, events, slack=slack, as_json=as_json)
    _show(outcome, page, as_json)


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
    given = _frames(network, inputs, frames)
    with ExitStack() as held:
        home = load_credentials(keys / cluster.gateway)
        coordinator = Coordinator(home, listen or f"0.0.0.0:{PORT}", _say)
        held.callback(coordinator.close)
        figures = Monitor(coordinator).status
        if statistics:
            held.enter_context(json_lines(statistics, figures))
        if metrics is not None:
            held.enter_context(prometheus(metrics, figures))
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
            held.enter_context(made_folder(output))
        outcome = _carried_out(
            coordinator,
            given,
            preparation,
            model,
            network,
            {},
            output=output,
            as_json=as_json,
        )
    _show(outcome, page, as_json)
    print_written([output, statistics])


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


def _random_frames(network: Network, count: int) -> Iterator[Inputs]:
    return islice(cycle([random_inputs(network, seed) for seed in range(SAMPLES)]), count)


def _frames(network: Network, paths: Sequence[Path], count: int | None) -> Iterator[Inputs]:
    """Frames from files, in the order of their names; random ones without files."""
    if not paths:
        return _random_frames(network, count or 100)
    if missing := [path for path in paths if not path.exists()]:
        raise InputError(f"there is no file or folder '{missing[0]}'; give .npy or .npz files, or a folder of them")
    files = [file for path in paths for file in (sorted(path.iterdir()) if path.is_dir() else [path])]
    files = [file for file in files if file.suffix in (".npy", ".npz")]
    if not files:
        raise InputError(f"'{paths[0]}' has no frames; expected .npy or .npz files")
    for file in files:  # an error before anything is prepared
        load_inputs(network, [file])

    def loaded() -> Iterator[Inputs]:
        for file in files:
            yield from load_inputs(network, [file])

    return islice(loaded(), count)


def _carried_out(
    coordinator: Coordinator,
    frames: Iterator[Inputs],
    preparation: Preparation,
    model: Path | None,
    network: Network,
    events: dict[int, Callable[[], None]],
    *,
    output: Path | None = None,
    slack: float = 0.0,
    as_json: bool = False,
) -> _Outcome:
    """All frames run; what each gives is compared and written.

    Outputs may differ by `slack` of their largest number more than the comparison allows.
    """
    truth = judge(model, network, Options()) if model else None
    monitor, history = Monitor(coordinator), RunHistory()
    waiting: list[Inputs] = []  # frames whose results are to be compared
    wanted: dict[int, tuple[Inputs, dict[str, Array]]] = {}  # of frames that come again, by their identity
    worst: OutputDifference | None = None

    def source() -> Iterator[Inputs]:
        for frame in frames:
            if truth:
                waiting.append(frame)
            yield frame

    with ExitStack() as held:
        results = coordinator(source(), preparation.of_devices)
        is_begun = False
        tell = None
        for number, result in enumerate(results):
            if not is_begun:
                is_begun = True
                if not as_json:
                    tell = held.enter_context(following(monitor))
            if event := events.get(number):
                event()
            history.note(monitor)
            if truth:
                frame = waiting.pop(0)
                if id(frame) not in wanted:
                    wanted[id(frame)] = frame, truth.run(frame)
                    if len(wanted) > SAMPLES:
                        wanted.pop(next(iter(wanted)))
                found = _compared(network, result, wanted[id(frame)][1], slack)
                worst = found if worst is None or badness(found) > badness(worst) else worst
            if output:
                _write_result(output, number, network, result)
        if tell:
            tell()
        status = monitor.status()
    return _Outcome(status, worst, truth.name if truth else "", coordinator, history)


def _compared(network: Network, result: dict[str, Array], wanted: dict[str, Array], slack: float) -> OutputDifference:
    found = compare(network, result, wanted)
    allowed = found.allowed + slack * float(np.abs(wanted[found.output]).max(initial=0))
    return replace(found, allowed=allowed, passes=found.largest <= allowed) if slack else found


def _write_result(folder: Path, number: int, network: Network, result: dict[str, Array]) -> None:
    path = folder / f"{number:06}.npz"
    with path.open("wb") as file:
        np.savez(file, **{name: to_file_layout(network, name, value) for name, value in result.items()})  # type: ignore[arg-type]


def _show(outcome: _Outcome, page: Path | None, as_json: bool) -> None:
    recoveries = outcome.coordinator.recoveries
    if page:
        write_atomic(page, cluster_run_page(outcome.status, recoveries, outcome.history))
    if as_json:
        print_json(
            {
                **outcome.status.to_dict(),
                "losses": recoveries_to_list(recoveries),
                "reference": outcome.reference,
                **(difference_to_dict(outcome.worst) if outcome.worst else {}),
            }
        )
    else:
        console.print(status_table(outcome.status))
        print_notes(map(recovery_words, recoveries))
        if page:
            print_written([page])
        console.print(run_figures(outcome.status, outcome.worst, outcome.reference), soft_wrap=True)
    if outcome.worst and not outcome.worst.passes:
        raise RunError(f"results are not those of {outcome.reference}: {outcome.worst}")


def _say(text: str) -> None:
    print_notes([text])
