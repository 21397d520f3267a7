"""Deployments: made of parts, judged by form and by what they compute, with everything that can be wrong planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.errors import InputError, ModelError, Unsupported
from edgewright.memory.deploy import PartRequest, deploy, plan_in_slots
from edgewright.network import Builder, DType, Network, Region
from edgewright.network.operators import Binary, BinaryKind, Clamp, Conv2d
from edgewright.network.part_ends import with_inputs, with_outputs
from edgewright.network.parts import TensorRegion, cut
from edgewright.program.deployment import OUTSIDE, ArenaLayout, Deployment, Fifo, Reader, Worker
from edgewright.program.deployment_check import checked_deployment, deployment_faults
from edgewright.program.deployment_memory import UNPACKED, laid_out, weights, with_slots
from edgewright.program.deployment_run import deployment_errors
from tests.helpers.counts import seeds
from tests.helpers.random_deployments import frames_of, planner_in_lanes, random_deployment
from tests.helpers.random_networks import network_of_seed, networks


def diamond() -> Network:
    """A convolution, two branches of it, and their sum."""
    b, rng = Builder("diamond"), np.random.default_rng(0)
    x = b.input("x", (1, 8, 8, 4))

    def conv(source: str, name: str) -> str:
        w = b.constant(f"{name}.w", rng.standard_normal((4, 3, 3, 4)).astype(np.float32))
        return b.layer(Conv2d(pads=(1, 1, 1, 1)), [source, w], name)

    a = conv(x, "a")
    left, right = conv(a, "left"), b.layer(Clamp(0.0), [a], "right")
    return b.build([b.layer(Binary(BinaryKind.ADD), [left, right], "y")])


REQUESTS = [PartRequest("head", ("a",)), PartRequest("left", ("left",)), PartRequest("tail", ("right", "y"))]
WORKERS = [
    Worker("one", "this", "cpu", (0,), ("head", "tail")),
    Worker("two", "this", "cpu", (1,), ("left",)),
]


def pipeline(**options: object) -> Deployment:
    return deploy(diamond(), REQUESTS, WORKERS, **options)  # type: ignore[arg-type]


def first_fault(deployment: Deployment) -> str:
    return next(fault.message for fault in deployment_faults(deployment))


def errors(deployment: Deployment, network: Network, seed: int = 0, count: int = 6) -> list[str]:
    return list(deployment_errors(deployment, frames_of(network, count, seed), seed))


@settings(deadline=None, max_examples=40)
@given(networks(), st.integers(0, 1 << 30))
def test_random_deployments_are_sound_and_right(network: Network, seed: int):
    random = Random(seed)
    try:
        made = random_deployment(network, random, plan_in_slots if random.random() < 0.8 else None)
    except Unsupported:
        return
    assert list(deployment_faults(made)) == []
    assert errors(made, network, seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds("DEPLOYMENTS", 3000))
def test_many_random_deployments(seed: int):
    network, random = network_of_seed(seed), Random(seed)
    try:
        made = random_deployment(network, random, planner_in_lanes(random))
    except Unsupported:
        return
    assert list(deployment_faults(made)) == []
    for order in range(3):
        assert errors(made, network, seed + order) == []


def test_what_a_pipeline_comes_to():
    made = pipeline(slots=2)
    assert list(deployment_faults(made)) == []
    assert errors(made, diamond()) == []
    ends = {(fifo.what.tensor, fifo.source, fifo.reading) for fifo in made.fifos}
    assert ends == {
        ("x", OUTSIDE, ("head",)),
        ("a", "head", ("left", "tail")),
        ("left", "left", ("tail",)),
        ("y", "tail", (OUTSIDE,)),
    }
    # Four tensors of 1 KiB in two slots each, and nothing between but what `right` leaves for `y` in the second part.
    assert made.arenas["this", "ram"].bytes == 4 * 2 * 1024 + 1024
    assert weights(made) == {"this": 2 * 4 * 3 * 3 * 4 * 4}
    figures = {prediction.name: (prediction.value, prediction.how) for prediction in made.predictions}
    assert figures == {"RAM of this, ram": (9216, "exact"), "weights of this": (1152, UNPACKED)}


def test_replicas_share_weights_and_not_arenas():
    workers = [Worker(f"w{i}", "this", "cpu", (i,), ("all",), (i, 2)) for i in range(2)]
    network = diamond()
    one = deploy(network, [PartRequest("all", tuple(network.by_name))], [replace(workers[0], replica=(0, 1))])
    two = deploy(network, [PartRequest("all", tuple(network.by_name))], workers)
    assert weights(one) == weights(two)
    (arena,) = one.parts[0].plan.arenas.values() if one.parts[0].plan else ()
    assert two.ram_bytes - one.ram_bytes == arena
    assert errors(two, network, count=9) == []


def test_regions_are_joined_near_and_sent_as_needed_afar():
    network = diamond()
    halves = [Region(((0, 1), rows, (0, 8), (0, 4))) for rows in ((0, 4), (4, 8))]
    requests = [
        *(PartRequest(f"a{i}", ("a",), {"a": half}) for i, half in enumerate(halves)),
        *(PartRequest(f"b{i}", ("left", "right", "y"), {"y": half}) for i, half in enumerate(halves)),
    ]
    workers = [Worker(f"w{i}", device, "cpu", (i,), (f"a{i}", f"b{i}")) for i, device in enumerate(("l", "r"))]
    made = deploy(network, requests, workers, slots=1)
    assert errors(made, network) == []
    rows = {(fifo.source, fifo.reading): fifo.what.region.bounds[1] for fifo in made.fifos}
    assert rows["a0", ("b0",)] == (0, 4) and rows["a0", ("b1",)] == (3, 4)  # a halo of one row goes to the other
    assert rows[OUTSIDE, ("a0",)] == (0, 5) and rows[OUTSIDE, ("a1",)] == (3, 8)
    near = deploy(network, requests, [replace(worker, device="l") for worker in workers], slots=1)
    assert errors(near, network) == []
    assert {fifo.what.region.bounds[1] for fifo in near.fifos if fifo.source == OUTSIDE} == {(0, 8)}


def changed(deployment: Deployment, index: int, **fields: object) -> Deployment:
    """The deployment with another FIFO, and memory to match."""
    fifos = list(deployment.fifos)
    fifos[index] = replace(fifos[index], **fields)  # type: ignore[arg-type]
    return replace(deployment, fifos=tuple(fifos))


def with_worker(deployment: Deployment, index: int, **fields: object) -> Deployment:
    workers = list(deployment.workers)
    workers[index] = replace(workers[index], **fields)  # type: ignore[arg-type]
    return replace(deployment, workers=tuple(workers))


def with_part(deployment: Deployment, index: int, **fields: object) -> Deployment:
    parts = list(deployment.parts)
    parts[index] = replace(parts[index], **fields)  # type: ignore[arg-type]
    return replace(deployment, parts=tuple(parts))


def without_fifo(deployment: Deployment, tensor: str) -> Deployment:
    return replace(deployment, fifos=tuple(fifo for fifo in deployment.fifos if fifo.what.tensor != tensor))


def region(tensor: str, rows: tuple[int, int] = (0, 8), network: str = "diamond") -> TensorRegion:
    return TensorRegion(network, tensor, Region(((0, 1), rows, (0, 8), (0, 4))))


def twice(deployment: Deployment) -> Deployment:
    """Part `left` under two names, each giving what the caller takes: here rows of `y`."""
    network = diamond()
    (whole,) = [part for part in deployment.parts if part.name == "tail"]
    piece = cut(network, ("right", "y"), {"y": region("y", (2, 4)).region})
    pieces = {own: [replace(what, region=Region.whole((1, 8, 8, 4)))] for own, what in piece.inputs.items()}
    again = with_inputs(piece, pieces)
    part = replace(whole, name="again", network=again.network, plan=None, inputs=again.inputs, outputs=again.outputs)
    fifos = [
        replace(fifo, readers=(*fifo.readers, Reader("again"))) if "tail" in fifo.reading else fifo
        for fifo in deployment.fifos
    ]
    fifos.append(Fifo(region("y", (2, 4)), "again", (Reader(OUTSIDE),), 1))
    workers = (*deployment.workers, Worker("three", "this", "cpu", (2,), ("again",)))
    made = replace(deployment, parts=(*deployment.parts, part), workers=workers, fifos=tuple(fifos))
    return replace(made, arenas=laid_out(made))


PLANTED: list[tuple[Callable[[Deployment], Deployment], str]] = [
    (lambda d: without_fifo(d, "left"), "part 'left' computes 'left' .*, which no FIFO takes"),
    (lambda d: without_fifo(d, "x"), "part 'head' reads 'x' .*, which no FIFO brings"),
    (lambda d: changed(d, 1, readers=(Reader("left"),)), "part 'tail' reads 'a' .*, which no FIFO brings"),
    (lambda d: changed(d, 3, what=region("y", (0, 7))), "a FIFO takes 'y' .* from part 'tail', which does not"),
    (lambda d: changed(d, 3, what=region("y", (0, 9))), "'y' .* is not inside the tensor of shape"),
    (lambda d: changed(d, 3, what=region("z")), "'z' is no tensor that 'diamond' computes"),
    (lambda d: changed(d, 3, what=region("left.w")), "'left.w' is no tensor that 'diamond' computes"),
    (
        lambda d: changed(d, 3, what=region("y", network="other")),
        "is of network 'other', which the deployment does not have",
    ),
    (lambda d: changed(d, 0, source="nobody"), "joins 'nobody', which is no part"),
    (lambda d: changed(d, 0, source="head"), "a FIFO takes 'x' .* from part 'head', which does not compute it"),
    (lambda d: changed(d, 1, source=OUTSIDE), "brings 'a' .* from outside, which is no input of 'diamond'"),
    (
        lambda d: changed(d, 1, readers=tuple(map(Reader, ("left", "tail", OUTSIDE)))),
        "takes 'a' .* outside, which is no output",
    ),
    (lambda d: changed(d, 0, readers=()), "the readers of the FIFO of 'x' .* are none, or one stands twice"),
    (lambda d: changed(d, 0, slots=0), "the FIFO of 'x' .* has 0 slots; give it one or more"),
    (lambda d: replace(d, fifos=(*d.fifos, d.fifos[0])), "two FIFOs carry 'x'"),
    (twice, "parts 'tail' and 'again' both compute a piece of 'y'"),
    (lambda d: with_worker(d, 0, parts=("tail", "head")), "parts wait for each other in frame 0: 'head'|'tail'"),
    (lambda d: with_worker(d, 0, parts=("head",)), "no worker runs part 'tail'"),
    (lambda d: with_worker(d, 0, parts=("head", "tail", "nobody")), "runs 'nobody', which is no part"),
    (lambda d: with_worker(d, 0, parts=("head", "tail", "left")), "workers one and two both take frame 0"),
    (lambda d: with_worker(d, 0, replica=(0, 2)), "no worker takes frame 1 of part 'head'"),
    (lambda d: with_worker(d, 0, replica=(2, 2)), "worker 'one' takes turn 2 of 2, which does not exist"),
    (lambda d: with_worker(d, 0, name="two"), "two workers are called 'two'"),
    (lambda d: with_worker(d, 0, cores=(0, 0)), "the cores of worker 'one' are not numbers from 0 on"),
    (lambda d: with_part(d, 0, name="left"), "two parts are called 'left'"),
    (lambda d: with_part(d, 0, outputs={}), "the outputs of part 'head' are not those of its network"),
    (lambda d: with_part(d, 0, outputs={"a": region("a", (0, 7))}), "is not 'a' .*: its shape is"),
    (lambda d: with_part(d, 0, plan=d.parts[1].plan), "the plan of part 'head' is one of another network"),
    (lambda d: replace(d, networks=()), "there is no network"),
    (
        lambda d: replace(d, arenas={("this", "ram"): replace(d.arenas["this", "ram"], bytes=9215)}),
        "take 9216 bytes of 'ram', but it states 9215",
    ),
    (lambda d: replace(d, arenas={**d.arenas, ("that", "ram"): ArenaLayout(1)}), "'that' take 0 bytes of 'ram'"),
]


@pytest.mark.parametrize(("plant", "message"), PLANTED)
def test_what_is_wrong_is_named(plant: Callable[[Deployment], Deployment], message: str):
    with pytest.raises(InputError, match=f"this deployment cannot run: .*({message})"):
        checked_deployment(plant(pipeline()))


def test_wrong_types_are_named():
    made = pipeline()
    part = made.parts[0]
    kind = replace(part.network.tensors["a"], dtype=DType.INT8)
    network = replace(part.network, tensors={**part.network.tensors, "a": kind})
    assert "it is int8, and the whole is float32" in first_fault(with_part(made, 0, network=network, plan=None))


def test_an_output_that_nobody_computes_is_named():
    network = diamond()
    top = [PartRequest("all", tuple(network.by_name), {"y": region("y", (0, 5)).region})]
    with pytest.raises(InputError, match=r"no part computes 'y' \[0:1, 5:8, 0:8, 0:4\] for the caller"):
        deploy(network, top, [Worker("one", "this", "cpu", (0,), ("all",))])


def test_a_broken_plan_is_named():
    made = pipeline()
    plan = made.parts[2].plan
    assert plan is not None
    late = tuple(replace(b, first=1) if b.memory == "ram" else b for b in plan.buffers)
    assert "the plan of part 'tail': buffer 'right' is reserved" in first_fault(
        with_part(made, 2, plan=replace(plan, buffers=late))
    )


def test_requests_that_make_no_sense():
    network = diamond()
    worker = Worker("one", "this", "cpu", (0,), ("head", "rest"))
    rest = PartRequest("rest", ("left", "right", "y"))
    half = PartRequest("head", ("a",), {"a": region("a", (0, 4)).region})
    with pytest.raises(ModelError, match=r"part 'rest' reads .* of 'a', and other parts give 128 of its 256"):
        deploy(network, [half, rest], [worker])
    with pytest.raises(ModelError, match="two parts have the same name"):
        deploy(network, [rest, rest], [worker])
    with pytest.raises(ModelError, match="is of network 'other'; there are 'diamond'"):
        deploy(network, [replace(rest, network="other")], [worker])
    with pytest.raises(ModelError, match="part 'spare' gives nothing that another part or the caller reads"):
        deploy(network, [*REQUESTS, replace(half, name="spare")], WORKERS)


def test_the_judge_sees_wrong_weights_and_wrong_order():
    network, made = diamond(), pipeline(planner=lambda _: None)
    part = made.parts[1]
    constants = {name: value + 1 for name, value in part.network.constants.items()}
    wrong = with_part(made, 1, network=replace(part.network, constants=constants))
    assert list(deployment_faults(wrong)) == []
    assert "of frame 0 is not what the whole network gives" in errors(wrong, network)[0]
    stuck = with_worker(made, 0, parts=("tail", "head"))
    assert "no worker can continue; waiting: 'tail' for frame 0" in errors(stuck, network)[0]


def test_the_judge_sees_a_part_that_writes_where_it_reads():
    network, made = diamond(), pipeline()
    plan = made.parts[2].plan
    assert plan is not None
    right = replace(plan.views["a"])
    shared = replace(
        plan, views={**plan.views, "right": right}, buffers=tuple(b for b in plan.buffers if b.name != "right")
    )
    found = errors(with_part(made, 2, plan=shared), network)
    assert found and "part 'tail' writes to 'a'" in found[0]


def test_the_judge_sees_slots_that_are_freed_too_early():
    """A FIFO that does not know one of its readers hands its slot out while that one still reads."""
    network = diamond()
    workers = [Worker(f"w{i}", "this", "cpu", (i,), (part.name,)) for i, part in enumerate(REQUESTS)]
    made = with_slots(deploy(network, REQUESTS, workers), {region("a"): 1})
    assert all(errors(made, network, seed) == [] for seed in range(5))
    made = changed(made, 1, readers=(Reader("left"),))
    seen = {message for seed in range(20) for message in _silently(made, network, seed)}
    assert any("is not what the whole network gives" in message for message in seen)


def _silently(made: Deployment, network: Network, seed: int) -> list[str]:
    """With the slot marked as read by the forgotten reader too, as an executor that knows no better would."""
    from edgewright.program import deployment_run

    class Forgetful(deployment_run._Ring):
        def done(self, reader: str, frame: int) -> None:
            if reader in self.read:
                super().done(reader, frame)

    kept, deployment_run._Ring = deployment_run._Ring, Forgetful  # type: ignore[misc]
    try:
        return errors(made, network, seed)
    finally:
        deployment_run._Ring = kept  # type: ignore[misc]


def test_pieces_that_cannot_be_joined_are_refused():
    network = diamond()
    part = cut(network, ("right",), {"right": region("right").region})
    pinwheel = [((0, 3), (0, 5)), ((0, 5), (5, 8)), ((5, 8), (3, 8)), ((3, 8), (0, 3)), ((3, 5), (3, 5))]
    pieces = [TensorRegion("diamond", "a", Region(((0, 1), r, c, (0, 4)))) for r, c in pinwheel]
    with pytest.raises(Unsupported, match="cannot be joined along one axis after the other"):
        with_inputs(part, {"a": pieces})
    with pytest.raises(Unsupported, match="has no output that holds"):
        with_outputs(part, [region("a")])
