"""The judge of finished plans: what it refuses and why, and that nothing it lets through computes wrongly."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from time import process_time

import numpy as np
import pytest
from click.testing import CliRunner

import edgewright
from edgewright import samples
from edgewright.cli import main
from edgewright.compiling import make_library
from edgewright.errors import InputError, ModelError
from edgewright.fusion.request import PlanRequest, make_plan
from edgewright.memory import plan
from edgewright.memory.row_windows import pullable
from edgewright.network import Arithmetic, Builder, DType, Network, Quant
from edgewright.network import check as check_network
from edgewright.network.operators import Binary, BinaryKind, Clamp, Concat, Conv2d, Dense
from edgewright.program import (
    Buffer,
    BufferKind,
    FaultKind,
    FusionSchedule,
    Plan,
    Split,
    Sweep,
    even_ends,
    faults,
    plan_text,
    plan_to_dict,
)
from edgewright.program.codec import plan_from_json
from tests.helpers.by_steps import by_steps
from tests.helpers.interpreting import check_interpreted
from tests.program.test_interpreter import moved, two_convs


def kinds(made: Plan) -> list[FaultKind]:
    return [fault.kind for fault in faults(made)]


def first(made: Plan) -> str:
    """What is wrong, in one line."""
    return next(fault.message for fault in faults(made))


def staged(made: Plan, stages) -> Plan:
    return replace(made, program=replace(made.program, stages=tuple(stages)))


def branches() -> Network:
    """Two convolutions of one input, joined, and a third; the joint lies where its parts are written."""
    rng = np.random.default_rng(1)
    b = Builder("branches")
    x = b.input("x", (1, 6, 6, 2))
    w = [b.constant(f"w{i}", rng.standard_normal((2, 3, 3, n)).astype(np.float32)) for i, n in enumerate((2, 2, 4))]
    parts = [b.layer(Conv2d(pads=(1, 1, 1, 1)), [x, w[i]], name) for i, name in enumerate(("left", "right"))]
    joint = b.layer(Concat(3), parts, "joint")
    return b.build([b.layer(Conv2d(pads=(1, 1, 1, 1)), [joint, w[2]], "y")])


def test_plans_that_are_right_have_no_faults():
    assert [kinds(made) for _, made in sources()] == [[]] * len(sources())


def test_stages_in_the_wrong_order():
    made = plan(two_convs(), plain=True)
    backwards = staged(made, made.program.stages[::-1])
    assert kinds(backwards) == [FaultKind.ORDER]
    assert first(backwards) == "layer 'b' reads 'a' before it is computed"


def test_a_step_left_out():
    made = plan(two_convs(), plain=True)
    (step,) = made.program.steps(made.program.stages[0])
    short = by_steps(made, {"a": (replace(step, region=step.region.with_axis(1, (0, 5))),)})
    assert (kinds(short), first(short)) == ([FaultKind.ORDER], "layer 'b' reads a part of 'a' that no longer exists")


def test_a_buffer_over_another_that_is_needed():
    made = plan(two_convs(), plain=True)
    at = {buffer.name: buffer.offset for buffer in made.buffers}
    for shift in (-4, 0, 4):
        if at["a"] + shift < 0:
            continue
        over = moved(made, "b", offset=at["a"] + shift)
        over = replace(over, peak_bytes=sum(over.arenas.values()), bound_bytes=0)
        assert (kinds(over), first(over)) == (
            [FaultKind.MEMORY],
            "layer 'b' overwrites part of 'a' before it has read it",
        )


def test_a_buffer_over_one_that_another_layer_reads_later():
    made = plan(branches(), plain=True)
    at = {buffer.name: buffer.offset for buffer in made.buffers}
    over = moved(made, "right", offset=at["left"])
    over = replace(over, peak_bytes=sum(over.arenas.values()), bound_bytes=0)
    assert (kinds(over), first(over)) == (
        [FaultKind.MEMORY],
        "layer 'joint' reads 'left' where 'right' lies at that time",
    )


@pytest.mark.parametrize("channels", [1, 2])
def test_an_overlap_one_element_too_bold(channels):
    made = plan(two_convs(6, channels), explain=False)
    sweeps = {stage.name: stage.sweep for stage in made.program.stages}
    at = {buffer.name: buffer.offset for buffer in made.buffers}
    shared = 0
    for x, y in (("x", "a"), ("a", "b")):
        if 0 < abs(at[y] - at[x]) < 6 * 6 * channels * 4:
            closer = moved(made, y, offset=at[y] + (4 if sweeps[y] is Sweep.FORWARD else -4))
            closer = replace(closer, peak_bytes=sum(closer.arenas.values()), bound_bytes=0)
            assert kinds(closer) == [FaultKind.MEMORY]
            shared += 1
    assert shared


def padded(pads: int) -> Plan:
    """A small input, and an output that is mostly its padding and lies over it."""
    b = Builder("padded")
    x = b.input("x", (1, 4, 4, 2))
    w = b.constant("w", np.ones((4, 3, 3, 2), np.float32))
    return plan(b.build([b.layer(Conv2d(pads=(pads,) * 4), [x, w], "y")]), explain=False)


def test_a_large_output_over_a_small_input():
    """Only the part of the output that reaches the input is looked at, element by element."""
    made = padded(400)
    assert kinds(made) == []
    [stage] = made.program.stages
    turned = Sweep.FORWARD if stage.sweep is Sweep.BACKWARD else Sweep.BACKWARD
    wrong = staged(made, [replace(stage, sweep=turned)])
    assert first(wrong) == "layer 'y' overwrites part of 'x' before it has read it"


def test_operands_of_another_rank_or_without_channels_are_named():
    b = Builder("one")
    x = b.input("x", (1, 6, 6, 2))
    w, bias = b.constant("w", np.ones((2, 3, 3, 2), np.float32)), b.constant("b", np.ones(2, np.float32))
    network = b.build([b.layer(Conv2d(), [x, w, bias], "y")])
    four = replace(network.layers[0], inputs=(x, w, bias, x))
    with pytest.raises(ModelError, match=r"layer 'y' \(Conv2d\) cannot take 'x' of shape \(1, 6, 6, 2\)"):
        check_network(replace(network, layers=(four,)))
    none = {w: replace(network.tensors[w], shape=(0, 3, 3, 2)), bias: replace(network.tensors[bias], shape=(0,))}
    with pytest.raises(ModelError, match=r"groups and output channels \[1, 0\] must be positive"):
        check_network(replace(network, tensors={**network.tensors, **none}))


def test_giant_plans_are_not_remembered_cell_by_cell():
    made = padded(4096)
    start = process_time()
    assert kinds(made) == []
    assert process_time() - start < 1  # there are 268 million cells
    with pytest.raises(InputError, match=r"too large to be judged, 1,074,.* B; compile makes one again"):
        plan_from_json(plan_text(made))


def test_the_wrong_sweep():
    made = plan(two_convs(), explain=False)
    other = {Sweep.FORWARD: Sweep.BACKWARD, Sweep.BACKWARD: Sweep.FORWARD}
    stages = [replace(stage, sweep=other[stage.sweep]) for stage in made.program.stages]
    assert kinds(staged(made, stages)) == [FaultKind.MEMORY]


def test_a_lifetime_that_ends_too_early():
    """Kernels take what no buffer holds for scratch, so that a lifetime is more than a remark."""
    made = moved(plan(two_convs(), plain=True), "a", last=0)
    assert kinds(made) == [FaultKind.MEMORY]
    assert first(made) == "buffer 'a' is reserved from stage 0 to 0, and used from 0 to 1"


def test_a_window_with_a_row_too_few():
    made = plan(two_convs(), explain=False, phases=["a", "b"])
    view = made.views["a"]
    axis, rows = view.window
    fewer = replace(made, views={**made.views, "a": replace(view, window=(axis, rows - 1))})
    assert kinds(fewer) == [FaultKind.MEMORY] or kinds(fewer) == [FaultKind.ORDER]


def test_scratch_over_data():
    made = plan(edgewright.read_model(samples.build("ds_cnn")), explain=False)
    scratch = next(buffer for buffer in made.buffers if buffer.kind is BufferKind.PLANE)
    layer = made.network.by_name[scratch.owner]
    source = next(buffer for buffer in made.buffers if buffer.name == made.views[layer.inputs[0]].buffer)
    over = moved(made, scratch.name, offset=source.offset)
    over = replace(over, peak_bytes=sum(over.arenas.values()), bound_bytes=0)
    assert kinds(over) == [FaultKind.MEMORY]
    assert kinds(replace(made, buffers=tuple(b for b in made.buffers if b is not scratch))) == [FaultKind.FORM]


def dense_in_shares() -> Plan:
    """A fully connected layer that sums up its input share by share."""
    rng = np.random.default_rng(2)
    b = Builder("shares")
    x = b.input("x", (1, 8))
    hidden = b.layer(Dense(), [x, b.constant("w", rng.standard_normal((12, 8)).astype(np.float32))], "hidden")
    y = b.layer(Dense(), [hidden, b.constant("v", rng.standard_normal((4, 12)).astype(np.float32))], "y")
    network = b.build([b.layer(Clamp(0.0), [y], "z")])
    return plan(network, explain=False, schedules=[FusionSchedule(("hidden", "y"), (Split(-1, even_ends(12, 3)),))])


def test_every_share_of_a_sum_is_taken_once():
    made = dense_in_shares()
    assert kinds(made) == []
    stage = next(stage for stage in made.program.stages if made.program.partial(stage))
    for layers in (("hidden",), ("hidden", "y", "y")):
        again = replace(stage, schedule=replace(stage.schedule, layers=layers))
        stages = [again if other is stage else other for other in made.program.stages]
        assert kinds(staged(made, stages)) == [FaultKind.FORM]
    steps = tuple(made.program.steps(stage))
    for wrong in (steps[:-1], (*steps, steps[-1])):
        assert kinds(by_steps(made, {stage.name: wrong})) == [FaultKind.ORDER]


def test_output_over_the_sums_it_is_made_of():
    """Kernels finish sums in an order of their own."""
    rng, quant = np.random.default_rng(3), Quant.of(0.05, 3)
    b = Builder("sums", Arithmetic.TFLITE)
    x = b.input("x", (1, 8), DType.INT8, quant)
    for name, shape in {"hidden": (12, 8), "y": (4, 12)}.items():
        w = b.constant(f"{name}.w", rng.integers(-127, 128, shape).astype(np.int8), Quant.of(0.01, 0))
        x = b.layer(Dense(), [x, w], name, dtype=DType.INT8, quant=quant)
    schedule = FusionSchedule(("hidden", "y"), (Split(-1, even_ends(12, 3)),))
    made = plan(b.build([x]), explain=False, schedules=[schedule])
    assert kinds(made) == []
    at = made.buffer_for(BufferKind.SUMS, "y").offset
    over = moved(made, "y", offset=at + 4)
    over = replace(over, peak_bytes=sum(over.arenas.values()), bound_bytes=0)
    assert (kinds(over), first(over)) == ([FaultKind.MEMORY], "'y' is written over the running sums of 'y'")


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("peak_bytes", "its buffers take"),
        ("bound_bytes", "its bound is"),
        ("weights_bytes", "its weights take"),
        ("macs_plain", "its layers take"),
    ],
)
def test_promises(field, message):
    made = plan(two_convs(), explain=False)
    broken = replace(made, **{field: getattr(made, field) + 4})
    assert kinds(broken)[0] is FaultKind.PROMISE and message in first(broken)


def test_buffers_for_nothing_and_schedules_that_cannot_be():
    made = plan(two_convs(), plain=True)
    assert first(replace(made, buffers=(*made.buffers, Buffer("more", 4, 0, 0, 0)))) == "buffer 'more' is not used"
    data = plan_to_dict(made)
    twice = [{"axis": 1, "ends": [3, 6]}] * 2
    for wrong in (
        {"splits": [{"axis": 1, "ends": [10**15]}]},
        {"splits": twice},
        {"splits": [{"axis": 2, "ends": [3, 6]}, *twice[:1]], "streamed": True},  # bands are the outermost
        {"splits": twice[:1], "streamed": True, "rows": {"a": 2}},
        {"rows": {"a": 2}},
        {"streamed": True, "columns": {"b": 2}},
    ):
        stages = [{**data["stages"][0], **wrong}, data["stages"][1]]
        with pytest.raises(InputError, match="stage 'a' is not well formed"):
            plan_from_json(json.dumps({**data, "stages": stages}))


def test_room_for_the_kernels_of_a_stage_is_of_use():
    """A search may set memory aside for them; the plan is read again as it was written."""
    made = make_plan(
        edgewright.read_model(samples.build("resnet8_int8")),
        PlanRequest(minimise_ram=True, max_slowdown=0.05),
        None,
        "cortex-m4",
    )
    assert any(made.buffer_for(BufferKind.ROOM, stage) for stage in made.order)
    assert plan_from_json(plan_text(made)).buffers == made.buffers


def test_a_plan_in_memory_is_judged_before_it_is_carried_out():
    network = two_convs()
    made = plan(network, plain=True)
    bad = staged(made, made.program.stages[::-1])
    with pytest.raises(InputError, match="'b' reads 'a' before it is computed"):
        edgewright.load(bad, network)
    with pytest.raises(InputError, match="'b' reads 'a' before it is computed"):
        make_library(network, plan=bad)


# Files


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the plan is damaged: it is not JSON"),
        (b"\xff\xfe\x00", "the plan is damaged: it is not JSON"),
        (b"[" * 100_000, "the plan is damaged: it is not JSON"),
        (b'{"format": ' + b"9" * 10_000 + b"}", "the plan is damaged: it is not JSON"),
        (b'{"format": 4, "model": "\\ud800"}', "the plan is damaged"),
        (b'{"format": 4, "format": 4}', "key 'format' occurs twice"),
        (b'{"format": 1}', "the plan has format 1, this edgewright reads 4; make the plan again"),
        (b'{"format": true}', "the plan has format True"),
        (b'{"format": {"a": 1}}', "the plan has format"),
        (b'{"format": 4}', "the plan is damaged: model: field required"),
        (b"[]", "this is not an edgewright plan"),
        (b"{}", "this is not an edgewright plan"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_files_that_are_no_plans(tmp_path, content, message):
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(InputError, match=message.replace("(", r"\(")) as caught:
        edgewright.load_plan(tmp_path / "plan.json")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("network", "name"), 5),
        (("network", "layers", 0, "name"), []),
        (("network", "layers", 0, "output"), 1),
        (("network", "layers", 0, "inputs"), ["x"]),
        (("network", "layers", 0, "op"), {"op": "Conv9"}),
        (("network", "layers", 0, "op", "stride"), [0, 1]),
        (("network", "layers", 0, "op", "stride"), ["1", 1]),
        (("network", "layers", 0, "op", "groups"), float("nan")),
        (("network", "layers", 0, "op", "activation"), {"float": "nan"}),
        (("network", "layers", 0, "op", "kernel"), [1, 1]),
        (("network", "tensors", 0, "shape", 0), "1"),
        (("network", "tensors", 0, "shape", 1), 1 << 50),
        (("network", "tensors", 0, "dtype"), "int9"),
        (("network", "constants", 0), "nothing"),
        (("network", "inputs"), []),
        (("network", "outputs"), ["nothing"]),
        (("network", "layouts"), {"x": [0, 1, 1, 2]}),
        (("buffers", 0, "size"), 10**30),
        (("buffers", 0, "offset"), -4),
        (("views", "a", "strides"), [1, 1, 1, 1]),
        (("stages", 0, "layers"), []),
        (("stages", 0, "sweep"), "upwards"),
        (("order",), ["b", "a"]),
        (("macs",), 7),
        (("model",), "another"),
    ],
    ids=lambda part: "/".join(map(str, part)) if isinstance(part, tuple) else str(part)[:20],
)
def test_wrong_values_are_named(path, value):
    data = plan_to_dict(plan(two_convs(), plain=True))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(InputError, match="the plan is damaged: ") as caught:
        plan_from_json(json.dumps(data))
    assert "\n" not in str(caught.value)


def test_the_command_line_refuses_a_damaged_plan_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = samples.write("stahl_running_example", tmp_path)
    runner = CliRunner()
    assert runner.invoke(main, ["plan", str(path), "-o", "plan.json"]).exit_code == 0
    data = json.loads((tmp_path / "plan.json").read_text())
    data["stages"].reverse()
    data["order"].reverse()
    (tmp_path / "plan.json").write_text(json.dumps(data))
    result = runner.invoke(main, ["compile", str(path), "--plan", "plan.json", "-o", "out", "--no-verify"])
    assert result.exit_code == 1 and not (tmp_path / "out").exists()
    assert "the plan is damaged: layer" in result.output and len(result.output.strip().splitlines()) == 1


# Plans that are right


@cache
def sources() -> tuple[tuple[Network, Plan], ...]:
    """Plans of every kind: whole layers, shared memory, rows, pulled inputs, tiles of every shape."""
    found = []
    networks = [
        two_convs(),
        branches(),
        *(edgewright.read_model(samples.build(name)) for name in ("resnet8_int8", "ds_cnn")),
    ]
    for network in networks:
        ways = [{"plain": True}, {}, {"phases": True}]
        ways += [{"pull_rows": True}, {"phases": True, "pull_rows": True}] if pullable(network) else []
        found += [(network, plan(network, explain=False, **how)) for how in ways]
    found += [(network, make_plan(network, PlanRequest(max_overhead=0.5))) for network in networks[2:]]
    shared = dense_in_shares()
    return (*found, (shared.network, shared))


def test_a_network_without_layers_is_complete():
    b = Builder("nothing")
    library, _ = make_library(b.build([b.input("x", (1, 8, 8, 2))]), target="host")
    assert not library.plan.selections


def test_rows_come_from_top_to_bottom():
    """A number that is read to the end may lie below an output that is written backward, but no row comes that way."""
    b = Builder("largest")
    image, number = b.input("image", (1, 5, 8, 4)), b.input("number", ())
    network = b.build([b.layer(Binary(BinaryKind.MAX), [image, number], "largest")])
    check_interpreted(network, plan(network, pull_rows=True, explain=False))
