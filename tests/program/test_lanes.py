"""Lanes: random networks shared among cores, judged, interpreted, run by threads; lanes in each other's way."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from time import sleep

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgewright import plan, read_model, samples
from edgewright.cli import main
from edgewright.emit import TARGETS
from edgewright.emit.native import build, in_threads
from edgewright.errors import EdgewrightError, InputError
from edgewright.fusion.lanes import lane_schedules
from edgewright.fusion.request import PlanRequest, make_plan
from edgewright.network import Builder, Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.network.operators import (
    Binary,
    BinaryKind,
    Clamp,
    Conv2d,
    Dense,
    MaxPool2d,
    Reduce,
    ReduceKind,
    Reshape,
)
from edgewright.network.reference import compare
from edgewright.program import (
    BufferKind,
    FusionSchedule,
    Plan,
    Split,
    even_ends,
    faults,
    interpret,
    plan_from_dict,
    plan_to_dict,
)
from edgewright.program.legal import problems
from edgewright.program.lower import lower
from tests.helpers.emitting import WARNINGS, emit
from tests.helpers.interpreting import check_interpreted
from tests.helpers.random_networks import networks
from tests.helpers.sanitized_runs import run_sanitized
from tests.helpers.tools import command
from tests.helpers.unrolling import unrolled
from tests.program.test_interpreter import moved, two_convs

MANY = 200 if os.environ.get("EDGEWRIGHT_THOROUGH") else 5
FAMILIES = ("host", "cortex-m4", "rv32imc", "cortex-m55")
THREADS = (
    *("-std=c99", "-O1", "-g", "-ffp-contract=off", "-fno-strict-aliasing"),
    # Lanes that never sleep take no lock: what orders them are the barriers alone.
    *("-fsanitize=thread", "-DCONVS_LANE_AWAKE_S=1e9", "-DCONVS_LANE_LOST=1e9"),
)


@st.composite
def in_lanes(draw: st.DrawFn, network: Network, count: int | None = None) -> list[FusionSchedule]:
    """Some layers, alone or a few together, each dealt out to a number of lanes along some axis."""
    found: list[FusionSchedule] = []
    names = [layer.name for layer in network.layers]
    at = 0
    while at < len(names):
        layers = tuple(names[at : at + draw(st.sampled_from((1, 1, 1, 2, 3)))])
        at += len(layers)
        shape = network.tensors[network.by_name[layers[-1]].output].shape
        axis = draw(st.sampled_from((1, 1, 2, -1)))
        lanes = draw(st.integers(1, 4) if count is None else st.sampled_from((1, count)))
        if not -len(shape) <= axis < len(shape) or shape[axis] < lanes or lanes == 1:
            continue
        ends = even_ends(shape[axis], draw(st.sampled_from((lanes, min(shape[axis], 2 * lanes)))))
        schedule = FusionSchedule(layers, (Split(axis, ends, lanes),))
        if not any(problems(network, schedule)):
            found.append(schedule)
    return found


def drawn(data: st.DataObject, network: Network, lanes: int | None = None) -> Plan:
    """A plan of the network with lanes somewhere; so many, if a number is given."""
    try:
        made = plan(network, explain=False, schedules=data.draw(in_lanes(network, lanes)))
    except InputError:  # what lies free between fused layers cannot be cut
        assume(False)
    assume(made.lanes > 1)
    return made


@settings(max_examples=4 * MANY)
@given(data=st.data(), network=networks())
def test_any_layers_in_any_lanes(data, network):
    made = drawn(data, network)
    check_interpreted(network, made)
    saved = plan_to_dict(made)
    assert plan_from_dict(saved).program.stages == made.program.stages
    assert plan_to_dict(plan_from_dict(saved)) == saved
    for stage in made.program.stages:
        steps = list(made.program.steps(stage))
        assert list(unrolled(lower(made, stage))) == steps
        shares = [list(made.program.lane_steps(stage, lane)) for lane in range(stage.schedule.lanes)]
        assert sorted(map(str, steps)) == sorted(str(step) for share in shares for step in share)


@settings(max_examples=MANY)
@given(data=st.data(), network=networks(), family=st.sampled_from(FAMILIES))
def test_threads_compute_what_one_core_does(data, network, family):
    """Kernels of all families, those of microcontrollers too, by threads of this machine."""
    made = drawn(data, network)
    library = emit(made, TARGETS[family], network)
    native = build(in_threads(library), flags=WARNINGS)
    for seed in range(3):
        inputs = random_inputs(network, seed)
        expected, shared = execute(network, inputs), native.run(inputs, poison=0x55)
        alone = native.run(inputs, poison=0xFF, alone=True)
        assert compare(network, shared, expected).passes
        for name in network.outputs:
            np.testing.assert_array_equal(shared[name], alone[name])
            if not network.tensors[name].dtype.is_float:
                np.testing.assert_array_equal(shared[name], expected[name])
    native.close()


def convs(size: int = 12, channels: int = 32) -> Network:
    """A convolution, a sum with what it read, a pool and a dense layer."""
    rng = np.random.default_rng(1)
    b = Builder("convs")

    def weights(*shape: int) -> str:
        return b.constant("w", rng.standard_normal(shape).astype(np.float32))

    x = b.input("x", (1, size, size, channels))
    y = b.layer(Conv2d(pads=(1, 1, 1, 1), activation=Clamp(0)), [x, weights(channels, 3, 3, channels)], "conv")
    y = b.layer(Binary(BinaryKind.ADD), [y, x], "add")
    y = b.layer(MaxPool2d((2, 2), stride=(2, 2)), [y], "pool")
    y = b.layer(Reshape((1, y_size := size * size * channels // 4)), [y], "flat")
    y = b.layer(Dense(), [y, weights(64, y_size)], "dense")
    return b.build([y])


def shared(network: Network, lanes: int = 2) -> Plan:
    """Every layer in lanes that can be: images by rows, lines by channels."""
    found = []
    for layer in network.layers:
        shape = network.tensors[layer.output].shape
        axis = 1 if len(shape) == 4 else -1
        schedule = FusionSchedule((layer.name,), (Split(axis, even_ends(shape[axis], lanes), lanes),))
        if not isinstance(layer.op, Reshape) and not any(problems(network, schedule)):
            found.append(schedule)
    return plan(network, explain=False, schedules=found)


def found(made: Plan) -> str:
    """The first fault."""
    return next((fault.message for fault in faults(made)), "")


def test_an_output_over_its_input_is_no_place_for_two_lanes():
    """One lane that goes backwards may write over what it has read; two do not know how far the other is."""
    network = two_convs(size=8)
    made = shared(network)
    assert not found(made)
    places = {buffer.name: buffer for buffer in made.buffers}
    row = network.tensors["a"].strides[1]
    both = moved(made, "b", offset=places["a"].offset + 2 * row)
    broken = replace(both, peak_bytes=sum(both.arenas.values()), bound_bytes=0)
    assert "overwrites part of 'a'" in found(broken) or "two lanes of stage 'b' touch" in found(broken)
    inputs = random_inputs(network)
    assert not np.array_equal(interpret(broken, inputs)["b"], interpret(made, inputs)["b"])


def test_lanes_that_meet_in_memory_are_found():
    """Shifted by a whole part, no lane overwrites what it reads itself: just what the other one does."""
    network = convs()
    made = shared(network)
    places = {buffer.name: buffer for buffer in made.buffers}
    assert not found(made)
    x = places[made.views["x"].buffer]
    half = network.tensors["conv"].bytes // 2
    both = moved(made, made.views["conv"].buffer, offset=x.offset + half + network.tensors["x"].strides[1])
    broken = replace(both, peak_bytes=sum(both.arenas.values()), bound_bytes=0)
    assert found(broken)


def test_tiles_of_lanes_lie_apart():
    """Two layers fused by rows: what lies between them exists for each lane."""
    network = two_convs(size=8)
    schedule = FusionSchedule(("a", "b"), (Split(1, (2, 4, 6, 8), 2),))
    made = plan(network, explain=False, schedules=[schedule])
    (tile,) = (buffer for buffer in made.buffers if buffer.lanes > 1)
    assert tile.name == "a" and tile.size == 2 * tile.part
    check_interpreted(network, made)
    together = moved(made, "a", lanes=1)
    assert "two lanes of stage 'a .. b' touch 'a' at once" in found(together)
    assert not np.array_equal(interpret(together, inputs := random_inputs(network))["b"], interpret(made, inputs)["b"])
    wrong = moved(made, "a", lanes=3, size=3 * tile.part)
    wrong = replace(wrong, peak_bytes=sum(wrong.arenas.values()), bound_bytes=0)
    assert "lanes that its stage does not have" in found(wrong)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (FusionSchedule(("a",), (Split(1, (3, 6), 3),)), "runs in 3 lanes, but has only 2 parts"),
        (FusionSchedule(("a",), (Split(1, (3, 6)), Split(2, (3, 6), 2))), "share only its outermost loop"),
        (FusionSchedule(("a", "b"), (Split(1, (3, 6), 2),)), "would both compute the same part of layer 'a'"),
        (FusionSchedule(("b", "mean"), (Split(1, (3, 6), 2),)), "sums over the parts"),
    ],
)
def test_what_lanes_cannot_share(schedule, words):
    rng = np.random.default_rng(0)
    b = Builder("open")
    x = b.input("x", (1, 6, 6, 2))
    w = [b.constant("w", rng.standard_normal((2, 3, 3, 2)).astype(np.float32)) for _ in range(2)]
    a = b.layer(Conv2d(pads=(1, 1, 1, 1)), [x, w[0]], "a")
    y = b.layer(Conv2d(pads=(1, 1, 1, 1)), [a, w[1]], "b")
    z = b.layer(Reduce((1, 2), ReduceKind.MEAN), [y], "mean")
    network = b.build([a, z])
    with pytest.raises(InputError, match=words):
        plan(network, explain=False, schedules=[schedule])


def test_scratch_is_divided_among_lanes():
    network = read_model(samples.build("resnet8_int8"))
    made = emit(shared(network), TARGETS["cortex-m4"], network).plan
    homes = [buffer for buffer in made.buffers if buffer.kind is BufferKind.KERNELS]
    assert any(home.lanes == 2 for home in homes)
    home = next(home for home in homes if home.lanes == 2)
    assert "not divided among the lanes" in found(moved(made, home.name, lanes=1))


def test_what_is_worth_sharing():
    """Images by rows, layers of few rows and many weights by whole panels of channels, small ones not at all."""
    rng = np.random.default_rng(0)
    b = Builder("mixed")

    def weights(*shape: int) -> str:
        return b.constant("w", rng.standard_normal(shape).astype(np.float32))

    x = b.input("x", (1, 56, 56, 32))
    y = b.layer(Conv2d(pads=(1, 1, 1, 1)), [x, weights(32, 3, 3, 32)], "wide")
    y = b.layer(Conv2d(pads=(1, 1, 1, 1), groups=32), [y, weights(32, 3, 3, 1)], "depthwise")
    y = b.layer(MaxPool2d((8, 8), stride=(8, 8)), [y], "pool")
    y = b.layer(Conv2d(pads=(1, 1, 1, 1)), [y, weights(200, 3, 3, 32)], "few rows")
    y = b.layer(MaxPool2d((7, 7)), [y], "last")
    y = b.layer(Dense(), [b.layer(Reshape((1, 200)), [y], "flat"), weights(10, 200)], "small")
    network = b.build([y])
    splits = {
        each.layers: each.splits for each in lane_schedules(network, plan(network, explain=False), 2) if each.lanes > 1
    }
    assert splits["wide",] == splits["depthwise",] == (Split(1, (28, 56), 2),)
    assert splits["few rows",] == (Split(-1, (112, 200), 2),)
    assert ("small",) not in splits and ("last",) not in splits


def test_one_lane_is_what_it_always_was():
    network = read_model(samples.build("stahl_running_example"))
    assert make_plan(network, PlanRequest(lanes=1)) == make_plan(network, PlanRequest())
    library = emit(make_plan(network, PlanRequest()), TARGETS["host"], network)
    assert not any("lane" in name for name in library.files)
    assert "lane" not in library.files[f"{library.name}.h"]


def test_lanes_give_way_to_memory():
    """What lanes keep apart takes RAM; stages go back to one lane until the plan fits."""
    network = read_model(samples.build("resnet8_int8"))
    alone = make_plan(network, PlanRequest(), target="cortex-m4")
    free = make_plan(network, PlanRequest(lanes=2), target="cortex-m4")
    assert free.lanes == 2 and free.peak_bytes > alone.peak_bytes
    tight = make_plan(network, PlanRequest(lanes=2, ram=alone.peak_bytes), target="cortex-m4")
    assert tight.peak_bytes <= alone.peak_bytes
    some = make_plan(network, PlanRequest(lanes=2, ram=(alone.peak_bytes + free.peak_bytes) // 2), target="cortex-m4")
    assert tight.peak_bytes <= some.peak_bytes <= free.peak_bytes
    assert not found(some) and not found(free)


@pytest.fixture(scope="module")
def threads():
    network = convs()
    return build(emit(shared(network, 3), TARGETS["host"], network), flags=WARNINGS)


def test_threads_end_and_begin_again(threads):
    inputs = random_inputs(threads.network)
    expected = threads.run(inputs, alone=True)["dense"]
    before = native_threads()
    for _ in range(3):
        for _ in range(20):
            np.testing.assert_array_equal(threads.run(inputs)["dense"], expected)
        threads.close()
    threads.close()
    if before:
        assert native_threads() <= before


def test_lanes_beside_busy_cores_compute_the_same(tmp_path):
    """Where every run counts as disturbed, lanes sleep, the caller is alone, and the fastest way follows."""
    network = convs()
    library = emit(shared(network, 3), TARGETS["host"], network)
    disturbed = [f"-D{library.name.upper()}_LANE_{setting}" for setting in ("LOST=-1", "TRIAL_S=0")]
    native, inputs = build(library, tmp_path, flags=(*WARNINGS, *disturbed)), random_inputs(network)
    expected = native.run(inputs, alone=True)["dense"]
    for _ in range(30):
        np.testing.assert_array_equal(native.run(inputs)["dense"], expected)
    native.close()


@pytest.mark.parametrize("callers", [2, 11])
def test_callers_at_once_have_a_crew_each(threads, callers):
    """Threads that run the library at once, each in its own arena; those beyond the crews that there are take turns."""
    others = [type(threads)(threads.library, threads.path) for _ in range(callers)]
    inputs = [random_inputs(threads.network, seed) for seed in range(callers)]
    expected = [threads.run(each, alone=True)["dense"] for each in inputs]
    most, all_there = 0, Barrier(callers)

    def many(which: int) -> bool:
        nonlocal most
        found = True
        all_there.wait()
        for _ in range(30):
            found &= np.array_equal(others[which].run(inputs[which])["dense"], expected[which])
            there = native_threads()
            sleep(0.001)  # threads that have ended are listed for a moment
            most = max(most, len(there & native_threads()))
        return found

    before = len(native_threads())
    with ThreadPoolExecutor(callers) as pool:
        assert all(pool.map(many, range(callers)))
    threads.close()
    lanes = threads.library.plan.lanes - 1
    assert most <= before + callers + 8 * lanes
    for _ in range(200):  # the system takes a moment to clear away threads that have ended
        if len(native_threads()) > before:
            sleep(0.01)
    assert len(native_threads()) <= before
    if before and callers == 2:
        assert most >= before + callers * (1 + lanes)


def native_threads() -> set[str]:
    """Threads of this process; none where the system does not tell."""
    return set(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else set()


def test_the_lanes_of_a_caller_are_on_its_cores(threads):
    """Crews go from thread to thread, and their threads are then started again."""
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores, and a system that pins threads to them")
    inputs = random_inputs(threads.network)
    found = []

    def pinned(core: int) -> None:
        os.sched_setaffinity(0, {core})
        before = set(os.listdir("/proc/self/task"))
        threads.run(inputs)
        found.append({frozenset(os.sched_getaffinity(int(each))) for each in {*os.listdir("/proc/self/task")} - before})

    for core in [*os.sched_getaffinity(0)] * 6:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(pinned, core).result()
        assert found.pop() <= {frozenset({core})}
    threads.close()


def _in_child(native, inputs, queue):
    queue.put(native.run(inputs)["dense"])
    native.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_has_threads_of_its_own(threads):
    inputs = random_inputs(threads.network)
    expected = threads.run(inputs)["dense"]
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(threads, inputs, queue))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    np.testing.assert_array_equal(queue.get(), expected)
    np.testing.assert_array_equal(threads.run(inputs)["dense"], expected)
    threads.close()


@pytest.mark.slow
def test_the_thread_sanitizer_finds_races_only_without_barriers():
    network = convs()
    library = emit(shared(network), TARGETS["host"], network)
    inputs, file = random_inputs(network), f"{library.name}.c"
    try:
        actual = run_sanitized(library, inputs, THREADS)
    except EdgewrightError as error:
        if "data race" in str(error):
            raise
        pytest.skip(f"no thread sanitizer here: {str(error)[-200:]}")
    assert compare(network, actual, execute(network, inputs)).passes
    alone = str(library.files[file]).replace(f"{library.name}_lanes_meet(lane, lanes);", "")
    with pytest.raises(EdgewrightError, match="data race"):
        run_sanitized(replace(library, files={**library.files, file: alone}), inputs, THREADS)


STUBS = {
    "FreeRTOS.h": """#include <stdint.h>
typedef int BaseType_t; typedef unsigned UBaseType_t; typedef uint32_t StackType_t; typedef uint32_t TickType_t;
#define pdTRUE 1
#define pdPASS 1
#define portMAX_DELAY 0xffffffffu
""",
    "task.h": """typedef struct task *TaskHandle_t; typedef void (*TaskFunction_t)(void *);
uint32_t ulTaskNotifyTake(BaseType_t clear, TickType_t wait);
BaseType_t xTaskNotifyGive(TaskHandle_t task);
UBaseType_t uxTaskPriorityGet(TaskHandle_t task);
BaseType_t xTaskCreate(
    TaskFunction_t, const char *, uint32_t, void *, UBaseType_t, TaskHandle_t *);
BaseType_t xTaskCreatePinnedToCore(
    TaskFunction_t, const char *, uint32_t, void *, UBaseType_t, TaskHandle_t *, BaseType_t);
BaseType_t xPortGetCoreID(void);
void taskYIELD(void);
""",
    "zephyr/kernel.h": """#include <stddef.h>
struct k_thread { int x; }; struct k_sem { int x; }; typedef int k_timeout_t; typedef struct k_thread *k_tid_t;
typedef char k_thread_stack_t;
#define K_FOREVER 0
#define K_NO_WAIT 0
#define K_THREAD_STACK_ARRAY_DEFINE(name, count, size) k_thread_stack_t name[count][size]
int k_sem_take(struct k_sem *, k_timeout_t); void k_sem_give(struct k_sem *); void k_yield(void);
int k_sem_init(struct k_sem *, unsigned, unsigned); k_tid_t k_current_get(void); int k_thread_priority_get(k_tid_t);
k_tid_t k_thread_create(struct k_thread *, k_thread_stack_t *, size_t, void (*)(void *, void *, void *), void *,
    void *, void *, int, uint32_t, k_timeout_t);
""",
    "pico/multicore.h": """#include <stddef.h>
void multicore_launch_core1_with_stack(void (*)(void), uint32_t *, size_t); void tight_loop_contents(void);
uint32_t multicore_fifo_pop_blocking(void); void multicore_fifo_push_blocking(uint32_t);
""",
}


@pytest.mark.parametrize(
    "system",
    ["", "LANES_FREERTOS", "LANES_FREERTOS -DESP_PLATFORM", "LANES_ZEPHYR", "LANES_PICO", "CALLER_BRINGS_LANES"],
)
def test_tasks_of_microcontrollers_compile(system, tmp_path):
    """Against headers that declare what the systems declare."""
    network = convs()
    library = emit(shared(network), TARGETS["cortex-m4"], network)
    stubs = {**STUBS, **{f"freertos/{name}": STUBS[name] for name in ("FreeRTOS.h", "task.h")}}
    for name, content in {**stubs, **library.files}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    flags = [f"-DCONVS_{system}".split(" ")[0], *system.split(" ")[1:]] if system else []
    line = [*command("gcc"), *WARNINGS, "-Wno-unused-parameter", f"-I{tmp_path}", *flags, "-fsyntax-only"]
    done = subprocess.run([*line, str(tmp_path / "convs_lanes.c")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_command_line(tmp_path):
    model = samples.write("resnet8_int8", tmp_path)
    done = CliRunner().invoke(main, ["plan", str(model), "--lanes", "2", "--json"])
    assert done.exit_code == 0, done.output
    data = json.loads(done.output)
    assert any(split.get("lanes") == 2 for stage in data["stages"] for split in stage.get("splits", ()))
    assert "in lanes" in data["techniques"].values()
    assert plan_from_dict(data).lanes == 2


def test_more_lanes_than_cores_are_told_what_it_costs(tmp_path):
    model = samples.write("resnet8_int8", tmp_path)
    done = CliRunner().invoke(main, ["plan", str(model), "--lanes", "64", "--target", "host"])
    assert done.exit_code == 0, done.output
    assert "they take turns" in " ".join(done.output.split())
    few = CliRunner().invoke(main, ["plan", str(model), "--lanes", "0"])
    assert few.exit_code == 2 and "--lanes" in few.output
    with pytest.raises(InputError, match="from 1 to 64"):
        PlanRequest(lanes=65)
