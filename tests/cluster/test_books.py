"""The rules by which devices of a cluster run and send: without threads and sockets, in random orders.

Every device has its memory, filled with what the plan says should be there: whoever overwrites what is still needed, or
reads what is not there yet, is found out. Nobody may be stuck, and results come in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from edgewright.cluster.costs import DivisionCosts
from edgewright.cluster.deploying import ClusterDeployment, deployed
from edgewright.cluster.devices import Cluster
from edgewright.cluster.node.frame_book import FrameBook
from edgewright.cluster.node.node_plan import NodeFifo, NodeLibrary, NodePlan, plan_bytes, read_plan
from edgewright.cluster.running.device_library import DeviceLibrary
from edgewright.cluster.running.prepared_plan import node_plans
from edgewright.cluster.strategies import Strategies
from edgewright.errors import Damaged, Infeasible
from tests.cluster.test_plans import case
from tests.helpers.counts import seeds

FEW, FRAMES, WINDOW = 12, 6, 3
MANY = [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds("CLUSTERS", 300)[FEW:]]


def plans_of(planned: ClusterDeployment, cluster: Cluster) -> dict[str, NodePlan]:
    """The plans of all devices, with libraries that nobody loads, written and read again."""
    about = NodeLibrary("0" * 64, 1, 0, "any", ())
    home = {part: worker.device for worker in planned.deployment.workers for part in worker.parts}
    libraries = {
        device: DeviceLibrary(Path("none"), about, {part: part for part, where in home.items() if where == device})
        for device in home.values()
    }
    plans = node_plans("test", planned, cluster, 1.0, libraries)
    return {device: read_plan(plan_bytes(plan)) for device, plan in plans.items()}


def content(fifo: int, frame: int, size: int) -> bytes:
    """What a FIFO carries for a frame, told from everything else."""
    seed = sha256(f"{fifo} {frame}".encode()).digest()
    return (seed * (size // len(seed) + 1))[:size]


class Devices:
    """All devices of a plan, whose events happen one after the other, each in two steps."""

    def __init__(self, plans: dict[str, NodePlan], first: int, random: Random) -> None:
        self.plans, self.first, self.random = plans, first, random
        self.books = {device: FrameBook(plan, first) for device, plan in plans.items()}
        self.memories = {device: bytearray(random.randbytes(plan.memory_bytes)) for device, plan in plans.items()}
        self.gateway = next(iter(plans.values())).gateway
        self.credits: list[tuple[str, str, int, int]] = []  # on their way: from, to, FIFO, frame
        self.under_way: list[Callable[[], None]] = []
        self.busy: set[str] = set()
        self.results: dict[int, set[int]] = {}
        self.expected = {fifo.number for fifo in plans[self.gateway].fifos if fifo.is_result}

    def run(self) -> None:
        """Until all results are there; somebody must always be able to go on."""
        last = self.first + FRAMES
        while (done := self._done()) < last:
            self.books[self.gateway].admit(min(done + WINDOW, last))
            for device, book in self.books.items():
                self.credits += [(device, fifo.origin, fifo.number, frame) for fifo, frame in book.new_credits()]
            events = [*self._beginnings(), *self._ends(), *self._told()]
            assert events, "nobody can go on"
            self.random.choice(events)()

    def _done(self) -> int:
        frame = self.first
        while self.results.get(frame) == self.expected:
            frame += 1
        return frame

    def _beginnings(self) -> Iterator[Callable[[], None]]:
        for device, book in self.books.items():
            if device not in self.busy:
                for worker, part, frame in book.runnable():
                    yield lambda d=device, w=worker, p=part, f=frame: self._run(d, w, p, f)
            if (what := book.sendable()) and f"sends {device}" not in self.busy:
                yield lambda d=device, w=what: self._send(d, *w)

    def _ends(self) -> Iterator[Callable[[], None]]:
        for number in range(len(self.under_way)):
            yield lambda n=number: self.under_way.pop(n)()

    def _told(self) -> Iterator[Callable[[], None]]:
        """The oldest credit from each device to each other."""
        seen = set()
        for credit in self.credits:
            if credit[:2] not in seen:
                seen.add(credit[:2])
                yield lambda c=credit: self._tell(c)

    def _tell(self, credit: tuple[str, str, int, int]) -> None:
        self.credits.remove(credit)
        device, origin, fifo, frame = credit
        assert self.books[origin].credited(fifo, frame, device)

    def _run(self, device: str, worker: int, number: int, frame: int) -> None:
        plan, book = self.plans[device], self.books[device]
        part = plan.parts[number]
        fifos = [book.progress[each].fifo for each in part.writes]
        self.busy.add(device)
        for fifo in fifos:
            self._write(device, fifo, frame, spoil=True)

        def end() -> None:
            for each in part.reads:
                self._check(device, book.progress[each].fifo, frame, f"'{part.name}' reads")
            for fifo in fifos:
                self._write(device, fifo, frame)
                if fifo.is_result:
                    self._result(fifo.number, frame)
            book.ran(worker)
            self.busy.discard(device)

        self.under_way.append(end)

    def _send(self, device: str, fifo: NodeFifo, frame: int, target: str) -> None:
        self.busy.add(f"sends {device}")
        book = self.books[target]
        theirs = book.progress[fifo.number].fifo
        if target != device:
            assert book.is_expected(fifo.number, frame, fifo.wire_bytes, device)
        if theirs.starts:
            self._write(target, theirs, frame, spoil=True)

        def end() -> None:
            if not fifo.is_given:
                self._check(device, fifo, frame, f"it is sent to '{target}'")
            if theirs.starts:
                self._write(target, theirs, frame)
            if theirs.is_result:
                self._result(fifo.number, frame)
            book.came(fifo.number, frame)
            self.books[device].sent(fifo.number, frame, target)
            self.busy.discard(f"sends {device}")

        self.under_way.append(end)

    def _write(self, device: str, fifo: NodeFifo, frame: int, spoil: bool = False) -> None:
        start = self.books[device].slot(fifo.number, frame)
        value = self.random.randbytes(fifo.bytes) if spoil else content(fifo.number, frame, fifo.bytes)
        self.memories[device][start : start + fifo.bytes] = value

    def _check(self, device: str, fifo: NodeFifo, frame: int, who: str) -> None:
        start = self.books[device].slot(fifo.number, frame)
        found = bytes(self.memories[device][start : start + fifo.bytes])
        assert found == content(fifo.number, frame, fifo.bytes), f"{who} FIFO {fifo.number}, frame {frame}: spoilt"

    def _result(self, number: int, frame: int) -> None:
        assert number not in self.results.setdefault(frame, set()), "a result came twice"
        self.results[frame].add(number)


def planned_cases(seed: int) -> Iterator[tuple[ClusterDeployment, Cluster]]:
    network, cluster, goal = case(seed)
    for find in Strategies(DivisionCosts(network, cluster), goal).table.values():
        try:
            found = find()
        except Infeasible:
            continue
        yield deployed(found.costs, found.division), cluster


@pytest.mark.parametrize("seed", [*range(FEW), *MANY])
def test_devices_that_keep_the_rules_never_spoil_a_frame_nor_wait_for_ever(seed: int):
    count = 0
    for planned, cluster in planned_cases(seed):
        plans = plans_of(planned, cluster)
        for order in range(2):
            Devices(plans, 17 * order, Random(100 * seed + order)).run()
        count += 1
    assert count >= 5


def some_plan() -> NodePlan:
    """A plan of a device with turns."""
    for seed in range(FEW):
        for planned, cluster in planned_cases(seed):
            for plan in plans_of(planned, cluster).values():
                if plan.turns and plan.parts and plan.device != plan.gateway:
                    return plan
    raise AssertionError("no plan has turns")


def test_without_turns_slots_that_share_bytes_would_be_spoilt():
    found = 0
    for seed in range(FEW):
        for planned, cluster in planned_cases(seed):
            careless = plans_of(replace(planned, turns=()), cluster)
            for order in range(3):
                devices = Devices(careless, 0, Random(order))
                try:
                    devices.run()
                except AssertionError as error:
                    found += "spoilt" in str(error)
    assert found


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"memory_bytes": 1}, "outside of the memory"),
        ({"workers": ()}, "run each part once"),
        ({"library": None}, "no library"),
        ({"addresses": {}}, "without an address"),
        ({"fifos": ()}, "without slots"),
    ],
)
def test_a_plan_that_is_not_sound_is_refused(changes: dict[str, object], words: str):
    plan = some_plan()
    kept = {name: getattr(plan, name) for name in plan.__struct_fields__}
    with pytest.raises(Damaged, match=words):
        read_plan(plan_bytes(NodePlan(**{**kept, **changes})))


def test_what_is_no_plan_is_refused():
    for wrong in (b"", b"[]", b'{"name": 1}', b"[" * 100_000, plan_bytes(some_plan())[:-20]):
        with pytest.raises(Damaged):
            read_plan(wrong)
