"""Files of every kind that the tool reads, each damaged at random and given to the command that a user would type.

`draw_case(seed)` gives a folder's files, one of them damaged, and the command lines. All files are made by code; `more`
are sound files of the user's own, told apart by how their names end.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from edgewright.dataflow.formats.sdf3_text import sdf3
from edgewright.dataflow.formats.text import to_json
from edgewright.dataflow.graph import Actor, Channel, Graph, Rates
from edgewright.fusion.request import PlanRequest, make_plan
from edgewright.hal.design_flow import analyse
from edgewright.hal.export.systemrdl import system_rdl
from edgewright.hal.importing import import_files, imported
from edgewright.hal.layout_choice import chosen_design
from edgewright.hal.lock.lock_file import lock_text, read_lock
from edgewright.memory.deploy import PartRequest, deploy
from edgewright.network.read import read_bytes
from edgewright.platform import load_board
from edgewright.program import load_deployment, plan_text, save_deployment
from edgewright.program.deployment import Worker
from edgewright.program.deployment_file import REDUCED_FILE
from edgewright.run.build import build_pipeline
from edgewright.run.estimated_times import estimate_profile
from edgewright.samples import write_application
from tests.hal.random_drivers import draw_program
from tests.helpers.damage import damaged_bytes, damaged_json, damaged_onnx, damaged_text, damaged_tflite
from tests.helpers.onnx_node_cases import node_cases, with_parameters_baked
from tests.helpers.random_models import KINDS as KINDS_OF_MODELS
from tests.helpers.random_models import draw_model
from tests.helpers.tflite_cases import CASES

MODELS = 300  # of each kind; cases draw among them
PLANS = 60
LOCKS = 12
DEPLOYED = 24
BUILT = 4
SLOW = frozenset({"AveragePool", "LpPool", "MaxPool", "Mish"})  # takes seconds even where nothing is damaged
Files = Mapping[str, bytes]
Command = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """What is tried: files by name, of which one is damaged, and what is typed in their folder."""

    kind: str
    files: Files
    damaged: str  # its name
    commands: tuple[Command, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of files: how a sound one is made and damaged, and what it is given to."""

    file: str  # its name
    share: int  # of 100 cases
    sound: Callable[[Random], bytes]
    damage: Callable[[Random, bytes, bytes], bytes]
    commands: Callable[[Random, str], tuple[Command, ...]]
    beside: Callable[[Random], Files] = lambda random: {}  # drawn with the same seed as the sound file


def draw_case(seed: int, more: Sequence[Path] = (), kinds: Sequence[str] = ()) -> Case:
    """The case of this number, among these kinds of files if any are named."""
    random = Random(f"damaged {seed}")
    names = list(kinds or KINDS)
    name = random.choices(names, [KINDS[one].share for one in names])[0]
    kind = KINDS[name]
    start, other = random.randrange(1 << 30), random.randrange(1 << 30)
    own = [path for path in more if path.suffix == Path(kind.file).suffix]
    sound = kind.sound(Random(start))
    if own and random.random() < 0.5:
        sound = random.choice(own).read_bytes()
    file = kind.file
    damaged = kind.damage(random, sound, kind.sound(Random(other)))
    return Case(name, {**kind.beside(Random(start)), file: damaged}, file, kind.commands(random, file))


def warm_up() -> None:
    """Makes all sound files that cases share, for processes that are forked from this one."""
    node_cases(SLOW)
    for number in range(PLANS):
        _planned(number)
    for text in _drivers()[:LOCKS]:
        _lock_of(text)
    for number in range(DEPLOYED):
        _deployed(number)
    for number in range(BUILT):
        _built(number)
    for kind in KINDS_OF_MODELS:
        for number in range(MODELS):
            _model(kind, number)


# Models and plans


@cache
def _model(kind: str, number: int) -> bytes:
    return draw_model(kind, number)


def _onnx(random: Random) -> bytes:
    if random.random() < 0.4:
        case = random.choice(node_cases(SLOW))
        return (with_parameters_baked(case) or case.model).SerializeToString()
    return _model(random.choice(("onnx float32", "onnx qdq")), random.randrange(MODELS))


def _tflite(random: Random) -> bytes:
    if random.random() < 0.4:
        (_, dtype), make_model = random.choice(list(CASES.items()))
        return make_model(np.random.default_rng(random.randrange(1 << 30)), dtype)
    return _model(random.choice(("tflite float32", "tflite int8")), random.randrange(MODELS))


MODES: tuple[Command, ...] = (
    *((),) * 4,
    ("--plain",),
    ("--phases",),
    ("--minimise", "ram"),
    ("--pull-input",),
    ("--board", "nucleo-f446re"),
    ("--ram", "2K"),
    ("--target", "cortex-m55"),
)


def _of_model(random: Random, file: str) -> tuple[Command, ...]:
    """Most often all that compiling does but building C; sometimes that too, or what looks at models otherwise."""
    chance = random.random()
    if chance < 0.05:
        return (("inspect", file), ("csdf", file, "--sdf3", "out.xml"))
    if chance < 0.1:
        return (("plan", file, *random.choice(MODES), "-o", "out.json", "--page", "out.html"),)
    check = () if chance > 0.98 else ("--no-verify",)
    return (("compile", file, *random.choice(MODES), *check, "-o", "out"),)


@cache
def _planned(number: int) -> tuple[bytes, str]:
    """A small model, and a plan for it as a file has it."""
    data = _model(KINDS_OF_MODELS[number % 4], number // 4)
    requests = (PlanRequest(), PlanRequest(phases=True), PlanRequest(minimise_ram=True), PlanRequest(plain=True))
    return data, plan_text(make_plan(read_bytes(data, "model"), requests[number // 4 % 4]))


def _plan(random: Random) -> bytes:
    return _planned(random.randrange(PLANS))[1].encode()


def _with_model(random: Random) -> Files:
    return {"model": _planned(random.randrange(PLANS))[0]}


def _of_plan(random: Random, file: str) -> tuple[Command, ...]:
    return (("compile", "model", "--plan", file, "--no-verify", "-o", "out"),)


# Boards, dataflow graphs, buffers, values


def _board(random: Random) -> bytes:
    folder = resources.files("edgewright.platform") / "boards"
    return random.choice(sorted(folder.iterdir(), key=lambda one: one.name)).read_bytes()


def _of_board(random: Random, file: str) -> tuple[Command, ...]:
    return (("compile", "model", "--board", f"./{file}", "--no-verify", "-o", "out"),)


@cache
def _graphs() -> tuple[Graph, ...]:
    """Small graphs that have all there is in either format."""
    ones = Rates((1,))
    phased = Graph(
        "phased",
        (Actor("a", 3, (1, 1, 2), note="first"), Actor("b", 2, (1, 2, 3), 1), Actor("c", 4)),
        (
            Channel("ab", "a", "b", Rates((1, 1, 1)), Rates((3, 0), (0,)), 2, 4, "note"),
            Channel("bb", "b", "b", Rates((1, 1), (1,)), Rates((1, 1), (1,)), 1),
        ),
    )
    ring = Graph(
        "ring",
        tuple(Actor(name, 1, (time,)) for name, time in zip("abcd", (2, 3, 1, 5), strict=True)),
        tuple(
            Channel(f"{one}{two}", one, two, ones if i else Rates((2,)), Rates((2,)) if i == 1 else ones, 4 * (i == 3))
            for i, (one, two) in enumerate(("ab", "bc", "cd", "da"))
        ),
    )
    return phased, ring


def _sdf3(random: Random) -> bytes:
    return sdf3(random.choice(_graphs())).encode()


def _graph_json(random: Random) -> bytes:
    return json.dumps(to_json(random.choice(_graphs())), indent=1).encode()


def _of_graph(random: Random, file: str) -> tuple[Command, ...]:
    if random.random() < 0.5:
        return (("csdf", file, "--analyse", "--limit", "2", "--page", "out.html", "--gantt", "out.svg"),)
    return (("csdf", file, "--pareto", "--limit", "2", "--dot", "out.dot", "--sdf3", "out.xml"),)


def _times(random: Random) -> bytes:
    names = [layer.name for layer in read_bytes(_planned(random.randrange(PLANS))[0], "model").layers]
    return json.dumps({name: random.choice((1, 0.5, "1/3", 200)) for name in names}).encode()


def _of_times(random: Random, file: str) -> tuple[Command, ...]:
    return (("csdf", "model", random.choice(("--times", "--mapping")), file),)


def _buffers(random: Random) -> bytes:
    rows = [(random.randrange(20), random.randrange(1, 10), random.choice((1, 64, 999))) for _ in range(12)]
    lines = (f"b{i},{start},{start + length},{size}" for i, (start, length, size) in enumerate(rows))
    return "\n".join(("id,lower,upper,size", *lines, "")).encode()


def _of_buffers(random: Random, file: str) -> tuple[Command, ...]:
    return (("layout", file, "-o", "out.csv", *random.choice(((), ("--capacity", "1000"), ("--alignment", "8")))),)


def _values(random: Random) -> bytes:
    network = read_bytes(_planned(random.randrange(PLANS))[0], "model")
    arrays = {name: np.zeros(network.tensors[name].shape, np.float32) for name in network.inputs}
    file = io.BytesIO()
    if len(arrays) == 1 and random.random() < 0.5:
        np.save(file, next(iter(arrays.values())))
    else:
        random.choice((np.savez, np.savez_compressed))(file, **arrays)
    return file.getvalue()


def _of_values(random: Random, file: str) -> tuple[Command, ...]:
    return (("run", "model", "--input", file),)


def _manifest(random: Random) -> bytes:
    return json.dumps({"edgewright": "0", "name": "model", "files": {"model.c": "0", "src/x.c": "0"}}).encode()


def _of_manifest(random: Random, file: str) -> tuple[Command, ...]:
    return (("compile", "model", "--no-verify", "-o", "out"),)


# Deployments, pipelines, profiles, applications


@cache
def _deployed(number: int) -> Files:
    """A small network in two parts, or one, as a folder has it."""
    network = read_bytes(_planned(number)[0], "model")
    names, middle = [layer.name for layer in network.layers], len(network.layers) // 2
    halves = [names[:middle], names[middle:]] if number % 2 and middle else [names]
    requests = [PartRequest(f"part{i}", tuple(half)) for i, half in enumerate(halves)]
    workers = [Worker(f"w{i}", "this", "cpu", (), (one.name,)) for i, one in enumerate(requests)]
    with TemporaryDirectory() as folder:
        save_deployment(deploy(network, requests, workers), folder)
        return _files_in(Path(folder), "deployed")


@cache
def _built(number: int) -> Files:
    """The same, compiled."""
    with TemporaryDirectory() as folder:
        for name, content in _deployed(number).items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        build_pipeline(load_deployment(Path(folder) / "deployed"), Path(folder) / "built")
        return {name: data for name, data in _files_in(Path(folder)).items() if name.endswith((".so", REDUCED_FILE))}


def _files_in(folder: Path, below: str = "") -> Files:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(Path(below) / path.relative_to(folder)): path.read_bytes() for path in paths}


def _deployment(random: Random) -> bytes:
    return _deployed(random.randrange(DEPLOYED))["deployed/deployment.json"]


def _with_weights(random: Random) -> Files:
    return _deployed(random.randrange(DEPLOYED))


def _pipeline(random: Random) -> bytes:
    return _built(random.randrange(BUILT))[f"built/{REDUCED_FILE}"]


def _with_libraries(random: Random) -> Files:
    return _built(random.randrange(BUILT))


def _of_folder(random: Random, file: str) -> tuple[Command, ...]:
    return (("run", str(Path(file).parent), "--frames", "2"),)


def _profile(random: Random) -> bytes:
    network = read_bytes(_planned(random.randrange(PLANS))[0], "model")
    return estimate_profile(network, load_board("raspberry-pi-4")).to_json().encode()


def _of_profile(random: Random, file: str) -> tuple[Command, ...]:
    mode = random.choice(((), ("--minimise", "latency"), ("--pareto",), ("--ram", "64K"), ("--method", "ga")))
    return (("map", "model", "--board", "raspberry-pi-4", "--times", file, *mode, "--page", "out.html"),)


@cache
def _application(name: str) -> Files:
    with TemporaryDirectory() as folder:
        write_application(name, folder)
        return _files_in(Path(folder))


def _app(random: Random) -> bytes:
    return _application("tiny_application")["app.toml"]


def _with_networks(random: Random) -> Files:
    return _application("tiny_application")


def _adaptive(random: Random) -> bytes:
    rules = (
        '[[rule]]\nsignal = "battery"\nbelow = 0.25\nuntil = 0.35\nrequest = "cnn1"\n'
        '[[rule]]\nscenario = "cnn1"\nmargin_below = 0.2\nrequest = "cnn2"\n'
    )
    return _application("paper_scenarios")["app.toml"] + rules.encode()


def _with_scenarios(random: Random) -> Files:
    return _application("paper_scenarios")


def _of_adaptive(random: Random, file: str) -> tuple[Command, ...]:
    return (("adapt", file, *random.choice(((), ("--share", "I,O"), ("--request-at", "2.5")))),)


def _of_app(random: Random, file: str) -> tuple[Command, ...]:
    return (("app", file, *random.choice(((), ("--method", "paper"), ("--ram", "24K"))), "--page", "out.html"),)


def _environment(random: Random) -> bytes:
    return _application("uav")[random.choice(("flight.toml", "gusts.toml"))]


def _with_uav(random: Random) -> Files:
    return _application("uav")


def _of_environment(random: Random, file: str) -> tuple[Command, ...]:
    return (("adapt", "app.toml", "--environment", file, *random.choice(((), ("--timeline", "out.svg"), ("--json",)))),)


def _cluster(random: Random) -> bytes:
    equal = '[[device]]\nname = "pi"\ncount = 3\nboard = "raspberry-pi-4"\nswitch = "hub"\nlatency = "0.1 ms"\n'
    other = '[[device]]\nname = "old"\nrate = "1.2 GMAC/s"\nram = "1 GiB"\nidle = "2 W"\nactive = "5 W"\n'
    cable = '[[link]]\nname = "uart"\nends = ["old", "hub"]\nbandwidth = "1 Mbit/s"\nhalf_duplex = true\n'
    return ('name = "shelf"\ngateway = "old"\nswitches = ["hub"]\n' + equal + other + cable).encode()


def _of_cluster(random: Random, file: str) -> tuple[Command, ...]:
    return (("cluster", "plan", "model", "--cluster", file, *random.choice(((), ("--json",)))),)


# Drivers


def _examples(suffix: str) -> dict[str, bytes]:
    folder = resources.files("edgewright.hal") / "examples"
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.name.endswith(suffix)}


def _headers(random: Random) -> Files:
    return _examples(".h")


@cache
def _drivers() -> tuple[bytes, ...]:
    drawn = [str(draw_program(seed, 3)).encode() for seed in range(40)]
    return (*(text for _, text in sorted(_examples(".c").items())), *drawn)


def _driver(random: Random) -> bytes:
    return random.choice(_drivers())


def _of_driver(random: Random, file: str) -> tuple[Command, ...]:
    return (("hal", file, "-o", "out", *random.choice(((), ("--explain",), ("--method", "paper"), ("--pareto",)))),)


@cache
def _lock_of(text: bytes) -> bytes:
    with TemporaryDirectory() as folder:
        for name, content in {**_examples(".h"), "driver.c": text}.items():
            (Path(folder) / name).write_bytes(content)
        return lock_text(chosen_design(analyse([Path(folder) / "driver.c"]))).encode()


def _lock(random: Random) -> bytes:
    return _lock_of(random.choice(_drivers()[:LOCKS]))


def _with_driver(random: Random) -> Files:
    return {**_examples(".h"), "driver.c": random.choice(_drivers()[:LOCKS])}


def _of_lock(random: Random, file: str) -> tuple[Command, ...]:
    return (("hal", "driver.c", "--lock", file, "-o", "out"),)


@cache
def _maps(suffix: str) -> tuple[bytes, ...]:
    """Register maps of existing hardware, and the same in SystemRDL."""
    files = sorted((Path(__file__).parents[1] / "hal" / "svd").glob("*.svd"))
    if suffix == "svd":
        return tuple(path.read_bytes() for path in files)
    with TemporaryDirectory() as folder:
        found = []
        for path in files:
            maps = imported(path, "svd", [path.stem.partition("_")[2].upper() + "0"] if "uart" in path.stem else ())
            for name, text in import_files(maps, path.name, "it").items():
                (Path(folder) / name).write_text(text)
            (Path(folder) / "driver.c").write_text('#include "it.h"\nvoid f(void) {}\n')
            made = analyse([Path(folder) / "driver.c"])
            lock = read_lock(Path(folder) / "it.lock.json")
            found.append(system_rdl(chosen_design(made, lock=lock), "it").encode())
        return tuple(found)


def _svd(random: Random) -> bytes:
    return random.choice(_maps("svd"))


def _rdl(random: Random) -> bytes:
    return random.choice(_maps("rdl"))


def _of_map(random: Random, file: str) -> tuple[Command, ...]:
    named = random.choice(((), ("--peripheral", "UART0"), ("--peripheral", "TIMER0")))
    return (("hal", f"--from-{file.rpartition('.')[2]}", file, *named, "-o", "out"),)


KINDS = {
    "ONNX model": Kind("file.onnx", 28, _onnx, damaged_onnx, _of_model),
    "TFLite model": Kind("file.tflite", 28, _tflite, damaged_tflite, _of_model),
    "plan": Kind("file.json", 16, _plan, damaged_json, _of_plan, _with_model),
    "board": Kind("file.toml", 5, _board, damaged_text, _of_board, _with_model),
    "graph, SDF3": Kind("file.xml", 5, _sdf3, damaged_text, _of_graph),
    "graph, JSON": Kind("file.json", 4, _graph_json, damaged_json, _of_graph),
    "times and mappings": Kind("file.json", 2, _times, damaged_json, _of_times, _with_model),
    "buffers": Kind("file.csv", 3, _buffers, damaged_text, _of_buffers),
    "values": Kind("file.npz", 1, _values, damaged_bytes, _of_values, _with_model),
    "manifest": Kind("out/edgewright.json", 1, _manifest, damaged_json, _of_manifest, _with_model),
    "driver": Kind("file.c", 5, _driver, damaged_text, _of_driver, _headers),
    "lock": Kind("file.json", 2, _lock, damaged_json, _of_lock, _with_driver),
    "map, SVD": Kind("file.svd", 2, _svd, damaged_text, _of_map),
    "map, SystemRDL": Kind("file.rdl", 1, _rdl, damaged_text, _of_map),
    "deployment": Kind("deployed/deployment.json", 2, _deployment, damaged_json, _of_folder, _with_weights),
    "pipeline": Kind("built/pipeline.json", 1, _pipeline, damaged_json, _of_folder, _with_libraries),
    "profile": Kind("times.json", 1, _profile, damaged_json, _of_profile, _with_model),
    "application": Kind("app.toml", 1, _app, damaged_text, _of_app, _with_networks),
    "application with scenarios": Kind("app.toml", 1, _adaptive, damaged_text, _of_adaptive, _with_scenarios),
    "cluster": Kind("cluster.toml", 1, _cluster, damaged_text, _of_cluster, _with_model),
    "environment": Kind("environment.toml", 1, _environment, damaged_text, _of_environment, _with_uav),
}
