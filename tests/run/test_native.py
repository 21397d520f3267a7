"""Pipelines of compiled parts: random cuts with replicas against the reference, memory to the byte, what is loaded."""

import json
import platform
import re
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random

import numpy as np
import pytest

import edgewright
from edgewright.emit import TARGETS
from edgewright.errors import InputError, ModelError, RunError
from edgewright.memory.deploy import PartRequest, deploy
from edgewright.network import Builder, Region, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import Conv2d, MaxPool2d
from edgewright.program import FusionSchedule, Split
from edgewright.program.deployment import Relation, RelationKind, Worker
from edgewright.program.deployment_file import REDUCED_FILE, digest_of, load_reduced, save_deployment, sealed
from edgewright.program.deployment_memory import laid_out, weights, with_built_weights
from edgewright.run.build import build_pipeline, plan_for_host, whole_network
from edgewright.run.pipeline import Pipeline, pipeline
from edgewright.run.requirements import check_executable
from tests.helpers.counts import seeds
from tests.helpers.damage import damaged_json
from tests.helpers.emitting import emit
from tests.helpers.parts_runs import assert_same
from tests.helpers.pipelines import allocated, threads_left
from tests.helpers.random_deployments import planner_in_lanes, random_deployment
from tests.helpers.random_networks import KINDS, network_of_seed
from tests.helpers.tools import needs

FRAMES = 12


def small_network():
    """Three layers with weights, whose parts are quick to compile."""
    b, rng = Builder("small"), np.random.default_rng(0)
    x = b.input("x", (1, 8, 8, 3))
    for name, channels in (("a", 3), ("b", 4)):
        weight = b.constant(f"{name}_w", rng.standard_normal((4, 3, 3, channels)).astype(np.float32))
        x = b.layer(Conv2d(pads=(1, 1, 1, 1)), [x, weight], name)
    return b.build([b.layer(MaxPool2d((2, 2), (2, 2)), [x], "pool")])


def in_parts(*planners):
    """The small network with a worker for each of its layers, the last of them twice."""
    network = small_network()
    names = [layer.name for layer in network.layers]
    planner = iter(planners or [plan_for_host] * len(names))
    workers = [Worker(f"w{i}", "this", "cpu", (i % 2,), (name,)) for i, name in enumerate(names[:-1])]
    workers += [Worker(f"last{i}", "this", "cpu", (), (names[-1],), (i, 2)) for i in range(2)]
    requests = [PartRequest(name, (name,)) for name in names]
    return deploy(network, requests, workers, planner=lambda part: next(planner)(part))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A pipeline of three parts, the last of them twice, as built into a folder."""
    where = tmp_path_factory.mktemp("pipeline")
    build_pipeline(in_parts(), where)
    return where


def check_frames(running, network, frames=FRAMES):
    inputs = [random_inputs(network, seed) for seed in range(frames)]
    with np.errstate(all="ignore"):
        wanted = [execute(network, each) for each in inputs]
    found = list(running(inputs))
    assert len(found) == frames
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.keys() == {name for name in theirs if name in network.producers}  # others need no run
        for name, value in ours.items():
            assert_same(value, theirs[name], 1e-4)


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(2 + n, marks=pytest.mark.slow) for n in seeds("PIPELINES", 58))]
)
def test_random_cuts_with_replicas_give_the_reference_result(seed):
    network, deployment = drawn(seed)
    with pipeline(deployment) as running:
        check_frames(running, network)
        check_frames(running, network, 3)
        assert allocated(running) == deployment.ram_bytes
    assert not threads_left()


def drawn(seed):
    """A random network on one device, in parts of layers, regions and partial sums, with replicas and lanes."""
    for number in range(1000):
        network = network_of_seed(1000 * seed + number, KINDS, 6)
        try:
            random = Random(f"{seed}.{number}")
            found = random_deployment(network, random, planner_in_lanes(random))
        except ModelError:  # an output that no layer computes
            continue
        if len({worker.device for worker in found.workers}) == 1 and len(found.parts) > 1:
            return network, found
    raise AssertionError("no such network")


@pytest.mark.slow
def test_onnxruntime_takes_parts_between_ours():
    network = small_network()
    deployment = in_parts(plan_for_host, lambda part: None, plan_for_host)
    with pipeline(deployment) as running:
        check_frames(running, network)
        assert running.memory.estimated_bytes >= 0


def test_memory_is_as_planned_to_the_byte_and_replicas_share_the_weights():
    network = small_network()
    plan = edgewright.plan(network, alignment=64, explain=False)
    for cores in (((0,),), ((0,), (1,), (0,))):
        deployment = whole_network(network, plan, cores)
        with pipeline(deployment) as running:
            check_frames(running, network)
            memory = running.memory
            mapped = maps_of(str(running.folder))
        assert memory.arena_bytes == len(cores) * plan.peak_bytes
        assert memory.slot_bytes == sum(f.slots * deployment.slot_bytes(f) for f in deployment.fifos)
        assert allocated(running) == memory.arena_bytes + memory.slot_bytes == deployment.ram_bytes
        assert memory.weights_bytes == emit(plan, TARGETS["host"], network).weight_bytes
        assert mapped in (None, 1)


def test_each_library_has_weights_of_its_own(tmp_path):
    """Two halves of an image by the same layers: told before they are compiled, and to the byte as they are mapped."""
    network = small_network()
    rows = [Region.whole(network.tensors["pool"].shape).with_axis(1, half) for half in ((0, 2), (2, 4))]
    requests = [PartRequest(f"half{i}", tuple(network.by_name), {"pool": region}) for i, region in enumerate(rows)]
    workers = [Worker(f"w{i}", "this", "cpu", (), (each.name,)) for i, each in enumerate(requests)]
    deployment = deploy(network, requests, workers, planner=plan_for_host)
    own = sum(network.constants[name].nbytes for name in ("a_w", "b_w"))
    biases = 2 * 4 * 4  # as parts have them
    assert weights(deployment)["this"] in (2 * own, 2 * (own + biases))
    reduced = build_pipeline(deployment, tmp_path)
    size = reduced.built_weights_bytes
    built = with_built_weights(deployment, size).predictions
    assert [(each.value, each.how) for each in built if each.name == "weights of this"] == [(size, "exact")]
    needs("nm")
    for part in reduced.parts:
        file = tmp_path / part.built.file
        symbols = subprocess.run(["nm", "-S", file], capture_output=True, text=True, check=True).stdout
        sizes = re.findall(r"^\w+ (\w+) R \w+_c\d+$", symbols, re.MULTILINE)
        assert sum(int(size, 16) for size in sizes) == part.built.weights_bytes


def maps_of(folder):
    """How often code in a folder is mapped; None where the system does not tell."""
    file = Path("/proc/self/maps")
    if not file.exists():
        return None
    return sum(folder in line and " r-xp " in line for line in file.read_text().splitlines())


def test_a_folder_runs_as_the_deployment_did(folder):
    network = small_network()
    with pipeline(folder) as running:
        check_frames(running, network)
        counts = [times.frames for times in running.statistics.workers.values()]
        assert counts == [FRAMES, FRAMES, FRAMES // 2, FRAMES // 2]


def test_a_folder_with_nothing_but_a_deployment_is_compiled(tmp_path):
    network = small_network()
    save_deployment(whole_network(network, plan_for_host(network)), tmp_path)
    with pipeline(tmp_path) as running:
        check_frames(running, network)
    assert not (tmp_path / REDUCED_FILE).exists()


def test_running_loads_numpy_and_pydantic_and_nothing_else(folder):
    program = f"""
import sys, numpy
before = set(sys.modules)
from edgewright.run.pipeline import pipeline
import numpy as np
with pipeline({str(folder)!r}) as running:
    assert len(list(running(np.zeros((1, 8, 8, 3), np.float32) for _ in range(5)))) == 5
print("|".join(name for name in set(sys.modules) - before if not name.startswith("numpy")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.strip().split("|"))
    own = {name for name in loaded if name.startswith("edgewright")}
    rooms = {name.split(".")[1] for name in own if "." in name}
    assert rooms == {"run", "program", "network", "platform", "errors", "files", "interrupts", "lazy", "text"}
    reads_files = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
    others = {name.split(".")[0] for name in loaded - own if not name.startswith("_sysconfigdata")}
    assert others - reads_files <= set(sys.stdlib_module_names)


def changed(folder, tmp_path, change):
    """A copy of the folder whose reduced deployment is changed, and sealed again."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.rglob("*.so"):
        target = copy / file.relative_to(folder)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(file.read_bytes())
    data = json.loads((folder / REDUCED_FILE).read_text())
    change(data["deployment"])
    (copy / REDUCED_FILE).write_text(json.dumps(sealed(data)))
    return copy


def put(*path_and_value):
    *way, last, value = path_and_value

    def change(data):
        for step in way:
            data = data[step]
        data[last] = value

    return change


def built(key, value):
    return put("parts", 0, "built", key, value)


LAYER = {"name": "z", "op": {"op": "LeakyRelu", "alpha": 0.5}, "inputs": ["x"], "output": "x"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (built("architecture", "riscv64"), f"was built for riscv64, this machine is {platform.machine()}"),
        (built("features", ["avx9000"]), "was built for a processor with avx9000, which this one lacks"),
        (built("digest", "00"), "is not the file that was built for"),
        (built("file", "nothing.so"), "cannot read '.*nothing.so'"),
        (built("file", "a\0b"), "cannot read"),
        (built("file", "../x.so"), "names a file outside the folder"),
        (built("function", "no_such_run"), "cannot be loaded"),
        (built("executor", "magic"), "known are native, onnxruntime, torch"),
        (built("lanes", 0), "has no lanes"),
        (built("weights_bytes", -1), "a memory of negative size"),
        (put("parts", 0, "built", None), "nothing was built for part 'a'"),
        (put("parts", 0, "inputs", {}), "the inputs of part 'a' are not those of its network"),
        (put("parts", 0, "network", "layouts", {"x": [0, 0, 1, 2]}), "network 'a': the layout of 'x' does not fit"),
        (put("networks", 0, "tensors", 0, "shape", [1, 4, 4, 3]), "is not inside the tensor of shape"),
        (put("networks", 0, "layers", [LAYER]), "a device needs no layers or weights of it"),
        (put("fifos", 0, "slots", 0), "has 0 slots"),
        (put("fifos", 0, "slots", 9), "has 9 slots, and others on 'this'"),
        (put("fifos", 0, "rows", -1), "a ring of -1 rows"),
        (put("fifos", 0, "readers", [{"part": "part9"}]), "joins 'part9', which is no part"),
        (put("fifos", 0, "readers", [{"part": ""}]), "takes 'x' .* outside, which is no output"),
        (put("fifos", 0, "what", "region", "bounds", "wide"), r"fifos\[0\]\.what\.region\.bounds: input should be"),
        (put("parts", 0, "network", "tensors", 0, "dtype", "object"), r"dtype: input should be 'float32'"),
        (put("workers", 0, "parts", ["part9"]), "'part9', which is no part"),
        (put("workers", 0, "replica", [2, 2]), "takes turn 2 of 2, which does not exist"),
        (put("workers", 3, "replica", [0, 2]), "both take frame 0 of part 'pool'"),
        (put("arenas", 0, 1, "slots", 0, 1, [0, 1 << 30]), "take .* bytes of 'ram', but it states"),
        (put("arenas", 0, 1, "slots", 0, 1, [1, 2]), "'x' and 'x' overlap"),
        (put("arenas", 0, 1, "slots", 0, 1, [0]), "has 2 slots, and others on 'this'"),
        (put("arenas", 0, 1, "slots", []), "take 0 bytes of 'ram', but it states"),
        (put("arenas", 0, 1, "bytes", 3), "but it states 3"),
        (put("fifos", 0, "memory", "sd"), "the slots of 'x' .* have no place in 'sd'"),
        (put("more", 1), "deployment.more: extra inputs are not permitted"),
    ],
)
def test_damaged_pipelines_are_refused_in_a_sentence(folder, tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        pipeline(changed(folder, tmp_path, change))


def test_a_changed_pipeline_is_not_given_to_native_code(folder, tmp_path):
    for key, value in (("function", "memcpy"), ("arenas", {"ram": 1})):
        data = json.loads((folder / REDUCED_FILE).read_text())
        data["deployment"]["parts"][0]["built"][key] = value
        (tmp_path / REDUCED_FILE).write_text(json.dumps(data))
        with pytest.raises(InputError, match="something in it was changed; make it again"):
            pipeline(tmp_path)
    (tmp_path / REDUCED_FILE).write_text(json.dumps(sealed(data | {"format": 2})))
    with pytest.raises(InputError, match="has format 2, this edgewright reads 3; make the deployment again"):
        pipeline(tmp_path)


def test_randomly_damaged_pipelines_are_refused_or_whole(folder, tmp_path):
    sound = (folder / REDUCED_FILE).read_bytes()
    refused = []
    for seed in range(300):
        (tmp_path / REDUCED_FILE).write_bytes(damaged_json(Random(seed), sound, sound))
        try:
            load_reduced(tmp_path)
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 100
    assert all("again" in sentence or "this is not an edgewright deployment" in sentence for sentence in refused)


def test_a_folder_without_a_pipeline_is_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"there is no file '.*pipeline\.json'; give a folder that `edgewright map -o`"
    ):
        load_reduced(tmp_path)
    (tmp_path / REDUCED_FILE).write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        load_reduced(tmp_path)


def test_what_a_runtime_says_is_told_with_frame_and_layers():
    network = small_network()
    deployment = whole_network(network, None)

    class Failing:
        memory_estimate = 0

        def run(self, inputs, outputs):
            raise RuntimeError("out of memory")

        def close(self):
            pass

    with pipeline(deployment) as whole:
        names = [(worker.name, part) for worker in whole.deployment.workers for part in worker.parts]
        running = Pipeline(whole.deployment, Path(), executors={name: Failing() for name in names})
        with (
            running,
            pytest.raises(RunError, match=r"frame 0 failed in part 'all' \(layers a to pool\): .*out of memory"),
        ):
            list(running([random_inputs(network)]))


def test_a_deployment_for_several_devices_is_refused(tmp_path):
    deployment = in_parts()
    workers = [replace(worker, device=f"d{i % 2}") for i, worker in enumerate(deployment.workers)]
    apart = replace(deployment, workers=tuple(workers))
    with pytest.raises(InputError, match=r"for 2 devices \(d0, d1\); a pipeline runs on one"):
        build_pipeline(replace(apart, arenas=laid_out(apart)), tmp_path)


def test_what_threads_cannot_keep_is_refused(tmp_path):
    deployment = in_parts()
    ring = replace(deployment.fifos[1], rows=4)
    with pytest.raises(InputError, match=r"part .a. does not keep as many rows of .a. .* as its FIFO"):
        build_pipeline(replace(deployment, fifos=(deployment.fifos[0], ring, *deployment.fifos[2:])), tmp_path)
    for kind, is_kept in ((RelationKind.EXCLUSIVE, False), (RelationKind.PREEMPTS, False), (RelationKind.AFTER, True)):
        related = replace(deployment, relations=(Relation(kind, ("a", "b")),))
        if is_kept:
            check_executable(related)
        else:
            with pytest.raises(InputError, match=rf"parts a and b may not run at the same time \({kind.value}\)"):
                build_pipeline(related, tmp_path)


def test_arenas_and_slots_have_places_of_their_own():
    network = small_network()
    deployment = whole_network(network, edgewright.plan(network, alignment=64, explain=False))
    ((home, layout),) = deployment.arenas.items()
    what, (first, *_) = next(iter(layout.slots.items()))
    others = {each: starts for each, starts in layout.slots.items() if each != what}
    size, far = deployment.slot_bytes(deployment.fifos[0]), layout.bytes
    assert layout.workers == {"worker0": 0} and first > 0
    for starts, message in (
        ((), r"the slots of 'x' .* have no place in 'ram'; lay the memory out again"),
        ((0, first + size), "arenas and slots overlap in 'ram', or lie outside it"),
        ((first, far), "arenas and slots overlap in 'ram', or lie outside it"),
        ((first, first), "arenas and slots overlap in 'ram', or lie outside it"),
    ):
        changed_layout = replace(layout, slots={what: starts, **others})
        with pytest.raises(InputError, match=message):
            check_executable(replace(deployment, arenas={home: changed_layout}))
    odd = replace(layout, bytes=far + size + 64, slots={what: (first, far + 1), **others})
    check_executable(deployment)
    with pytest.raises(InputError, match="overlap in 'ram', or lie outside it"):
        check_executable(replace(deployment, arenas={home: odd}))


def test_slots_lie_where_the_layout_says():
    deployment = in_parts()
    ((home, layout),) = deployment.arenas.items()
    (first, *rest), sizes = layout.slots.items(), {f.what: deployment.slot_bytes(f) for f in deployment.fifos}
    turned = replace(layout, slots={first[0]: first[1][::-1], **dict(rest)})
    with pipeline(replace(deployment, arenas={home: turned})) as running:
        slots = running._slots[first[0]]
        assert slots[0].address - slots[1].address == sizes[first[0]]
        check_frames(running, small_network())


def test_a_deployment_with_a_fault_is_refused(tmp_path):
    deployment = in_parts()
    with pytest.raises(InputError, match="this deployment cannot run"):
        build_pipeline(replace(deployment, fifos=deployment.fifos[1:]), tmp_path)


def test_lanes_run_in_a_pipeline_and_end_with_it():
    network = small_network()
    shared = FusionSchedule(("a",), splits=(Split(1, (4, 8), lanes=2),))
    plan = edgewright.plan(network, alignment=64, explain=False, schedules=[shared])
    assert plan.lanes == 2
    before = threads_of_the_process()
    with pipeline(whole_network(network, plan, ((0, 1),))) as running:
        assert running.deployment.parts[0].built.lanes == 2
        check_frames(running, network)
    assert threads_of_the_process() <= before


def threads_of_the_process():
    """All threads, those of C too; 0 where the system does not tell."""
    folder = Path("/proc/self/task")
    return len(list(folder.iterdir())) if folder.exists() else 0


def test_a_file_is_checked_without_holding_it(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(bytes(range(256)) * (1 << 14))  # 4 MiB
    tracemalloc.start()
    try:
        found = digest_of(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert found == sha256(path.read_bytes()).hexdigest()
