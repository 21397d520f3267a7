"""The coordinator of a run, in the process of the gateway: it begins epochs, and survives the loss of devices.

Inference is a pure function, so the gateway keeps frames until their results are there. When a device is lost, all
frames under way are dropped and computed again by a plan for the remaining devices, in a new epoch, which devices of
the old one cannot disturb. Plans for the loss of any one device are made beforehand; when more are lost, one is made
then.
"""

from __future__ import annotations

import queue
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from secrets import token_hex

from ...errors import EdgewrightError, InputError, RunError
from ...network.tensor import Array
from ..node.connections import Listener, Watch, dial, hello
from ..node.credentials import Credentials, Peer
from ..node.current_engine import CurrentEngine
from ..node.engine import Engine
from ..node.messages import Begin, Begun, Disconnected, Hello, Pulse, Rest, Trouble, checked_protocol
from .frame_keeper import Frame, FrameKeeper
from .lost_devices import LostDevices, Recovery
from .prepared_plan import PreparedPlan
from .remote_device import Event, Lost, Progress, RemoteDevice, untold

BEGIN_S = 10.0  # that devices have to begin an epoch
SUSPECT_S = 1.5  # after which a device that another cannot reach is given up
WAITING_RESULTS = 8  # that the caller has not taken yet

Replan = Callable[[frozenset[str]], PreparedPlan]


@dataclass(frozen=True)
class _Joined:
    remote: RemoteDevice


@dataclass(frozen=True)
class _Replanned:
    devices: frozenset[str]  # that a plan was asked for
    plan: PreparedPlan | EdgewrightError


_Anything = tuple[RemoteDevice | None, Event | _Joined | _Replanned | None]


class Coordinator:
    """Runs frames over devices: `connect`, `prepare`, call it with frames, once, and `close`."""

    def __init__(self, credentials: Credentials, listen: str, say: Callable[[str], None] = print) -> None:
        if not credentials.is_coordinator:
            raise InputError(
                f"the keys in '{credentials.folder}' are those of '{credentials.name}', which is not the gateway; "
                "frames are run from the gateway, with its keys"
            )
        self.credentials, self.name, self.say = credentials, credentials.name, say
        self.run = token_hex(16)
        self.current = CurrentEngine()
        self.epoch = 0
        self.plan: PreparedPlan | None = None
        self.plans: list[PreparedPlan] = []
        self.remotes: dict[str, RemoteDevice] = {}
        self.pulses: dict[str, Pulse] = {}
        self.allocated: dict[str, int] = {}
        self.recoveries: list[Recovery] = []
        self._addresses: dict[str, str] = {}
        self._events: queue.SimpleQueue[_Anything] = queue.SimpleQueue()
        self._waiting: set[str] = set()  # devices that have not begun the epoch
        self._begin_until = 0.0
        self._suspects: dict[str, tuple[int, float, str]] = {}  # the epoch, until when, why
        self._is_replanning, self._over = False, threading.Event()
        self._away = LostDevices(self._reached, self._joined, lambda text: self.say(text), self._over)
        self._is_better_later = False  # a device is back that the current plan does not use
        self._error: EdgewrightError | None = None
        self._replan: Replan | None = None
        self.keeper = FrameKeeper({}, {})
        self._has_all_frames = False
        self._control_thread = threading.Thread(target=self._control, name="edgewright-coordinator", daemon=True)
        self._listener = Listener(listen, credentials, self._serve, self.say)
        self.port = self._listener.port

    # Before the run

    def connect(self, addresses: Mapping[str, str]) -> None:
        """Reaches all other devices, by their addresses; an error names those that do not answer."""
        self._addresses = {name: address for name, address in addresses.items() if name != self.name}
        with ThreadPoolExecutor(max(1, len(self._addresses))) as pool:
            jobs = {name: pool.submit(self._reached, name) for name in self._addresses}
        errors = {name: error for name, job in jobs.items() if (error := job.exception())}
        self.remotes = {name: job.result() for name, job in jobs.items() if name not in errors}
        if errors:
            raise RunError("; ".join(map(str, errors.values())))

    def prepare(self, plans: Sequence[PreparedPlan], progress: Progress = untold) -> None:
        """Hands out plans and the files that they need. A device may be lost meanwhile if a plan does without it."""
        self.plans += plans
        self.keeper = FrameKeeper(plans[0].inputs, plans[0].outputs)
        for remote, error in self._handed_out(plans, progress).items():
            if not remote.is_lost or all(remote.name in plan.devices for plan in plans):
                raise error

    def _handed_out(self, plans: Sequence[PreparedPlan], progress: Progress) -> dict[RemoteDevice, BaseException]:
        """Prepares all devices at the same time; returns the errors."""
        remotes = tuple(self.remotes.values())
        with ThreadPoolExecutor(max(1, len(remotes))) as pool:
            jobs = {remote: pool.submit(remote.prepare, plans, progress) for remote in remotes}
        return {remote: error for remote, job in jobs.items() if (error := job.exception())}

    def _reached(self, name: str) -> RemoteDevice:
        return RemoteDevice(
            name,
            self._addresses[name],
            self.credentials,
            self.run,
            lambda remote, event: self._events.put((remote, event)),
        )

    # The run

    def __call__(self, frames: Iterable[Frame], replan: Replan | None = None) -> Iterator[dict[str, Array]]:
        """The results of the frames, in their order. With `replan`, a new plan is made when no prepared one is left."""
        self._replan, keeper = replan, self.keeper
        self._restart()
        feeder = threading.Thread(target=self._feed, args=(iter(frames),), name="edgewright-source", daemon=True)
        for thread in (self._control_thread, feeder):
            thread.start()
        while True:
            with keeper.changed:
                keeper.changed.wait_for(self._has_news)
                if keeper.finished == keeper.taken:
                    break
            yield keeper.take()
        self._note_resumed()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Ends the run: devices free its memory."""
        self._over.set()
        with self.keeper.changed:
            self.keeper.changed.notify_all()
        self._events.put((None, None))
        if self._control_thread.ident is not None:
            self._control_thread.join()
        while not self._events.empty():
            if isinstance(event := self._events.get()[1], _Joined):
                event.remote.close()
        for remote in self.remotes.values():
            remote.close()
        self._listener.close()
        self.current.end()

    def _has_news(self) -> bool:
        keeper = self.keeper
        is_through = self._has_all_frames and keeper.finished == keeper.admitted
        return keeper.finished > keeper.taken or is_through or self._error is not None or self._over.is_set()

    def _feed(self, frames: Iterator[Frame]) -> None:
        """Takes frames from the source where there is room to keep them."""
        keeper = self.keeper
        try:
            while True:
                with keeper.changed:
                    keeper.changed.wait_for(lambda: self._has_room() or self._over.is_set())
                if self._over.is_set():
                    return
                keeper.admit(next(frames))
                if engine := self.current.engine:
                    engine.admit(keeper.admitted)
        except StopIteration:
            pass
        except EdgewrightError as error:
            self._error = error
        except Exception as error:
            self._error = RunError(f"the source of frames failed: {type(error).__name__}: {error}")
        with keeper.changed:
            self._has_all_frames = True
            keeper.changed.notify_all()

    def _has_room(self) -> bool:
        keeper, kept = self.keeper, self.plan.frames_kept if self.plan else 1
        return keeper.admitted - keeper.finished < kept and keeper.finished - keeper.taken < WAITING_RESULTS

    # What happens

    def _control(self) -> None:
        """Handles one event after the other."""
        try:
            while not self._over.is_set():
                now = time.monotonic()
                ends = [until for _, until, _ in self._suspects.values()] + [self._begin_until] * bool(self._waiting)
                try:
                    remote, event = self._events.get(timeout=max(0.0, min(ends) - now) if ends else 1.0)
                    self._handle(remote, event)
                except queue.Empty:
                    pass
                self._check_time()
                self._note_resumed()
                if self._is_better_later:
                    self._restart_if_better()
        except EdgewrightError as error:
            self._fail(error)
        except Exception as error:
            self._fail(RunError(f"the coordinator failed: {type(error).__name__}: {error}"))

    def _handle(self, remote: RemoteDevice | None, event: object) -> None:
        if isinstance(event, _Joined):
            self._join(event.remote)
        elif isinstance(event, _Replanned):
            self._take_plan(event)
        elif remote is None:
            if isinstance(event, Trouble) and event.epoch == self.epoch:
                self._suspect(event, self.name)
        elif self.remotes.get(remote.name) is not remote:
            return  # it was given up
        elif isinstance(event, Lost):
            self._lose(remote.name, event.why)
        elif isinstance(event, Pulse):
            self.pulses[remote.name] = event
        elif isinstance(event, Begun) and event.epoch == self.epoch:
            self._waiting.discard(remote.name)
            self.allocated[remote.name] = event.allocated
        elif isinstance(event, Trouble) and event.epoch == self.epoch:
            self._suspect(event, remote.name)

    def _suspect(self, trouble: Trouble, reporter: str) -> None:
        """One device cannot reach another. If neither is lost soon, the one that was lost more often is given up."""
        pair = [name for name in (trouble.peer, reporter) if name in self.remotes]
        blamed = max(pair, key=self._away.losses.__getitem__, default=self.name)
        if not trouble.peer and reporter == self.name:
            raise RunError(f"the gateway's own share failed: {trouble.what}")
        if not trouble.peer:
            self._give_up(reporter, trouble.what)
        elif blamed != self.name and blamed not in self._suspects:
            why = f"'{reporter}' cannot work with '{trouble.peer}': {trouble.what}"
            self._suspects[blamed] = trouble.epoch, time.monotonic() + SUSPECT_S, why

    def _check_time(self) -> None:
        now = time.monotonic()
        for name, (epoch, until, why) in list(self._suspects.items()):
            if until <= now:
                self._suspects.pop(name, None)  # a new epoch has none
                if epoch == self.epoch:
                    self._give_up(name, why)
        if self._waiting and self._begin_until <= now:
            for name in tuple(self._waiting):
                self._give_up(name, f"it has not begun within {BEGIN_S:g} s")

    def _give_up(self, name: str, why: str) -> None:
        if name in self.remotes:
            self.remotes[name].close()
            self._lose(name, why)

    def _lose(self, name: str, why: str) -> None:
        self.remotes.pop(name)
        self.pulses.pop(name, None)
        self._suspects.pop(name, None)
        self._away.losses[name] += 1
        self.say(f"device '{name}' is lost: {why}")
        self._away.await_return(name, self.plans)
        if self.plan is None or name in self.plan.devices:
            self.recoveries.append(Recovery(name, why, time.monotonic()))
            self._restart()

    def _joined(self, remote: RemoteDevice) -> None:
        self._events.put((None, _Joined(remote)))

    def _join(self, remote: RemoteDevice) -> None:
        if remote.is_lost:  # its loss was told before it belonged to the run
            self._away.await_return(remote.name, self.plans)
            return
        self.remotes[remote.name] = remote
        self.say(f"device '{remote.name}' is back")
        self._restart_if_better()

    def _restart_if_better(self) -> None:
        """Not before a result has come: devices that lose each other again and again would stop everything."""
        keeper = self.keeper
        self._is_better_later = bool(self.plan) and keeper.first_finished is None and keeper.admitted > keeper.finished
        best = self._best_plan()
        if not self._is_better_later and best and (self.plan is None or len(best.devices) > len(self.plan.devices)):
            self._restart()

    def _best_plan(self) -> PreparedPlan | None:
        """Of the plans that the devices can carry out, the one with the most devices."""
        there = {self.name, *self.remotes}
        possible = [plan for plan in self.plans if plan.devices <= there]
        return max(possible, key=lambda plan: len(plan.devices), default=None)

    def _restart(self) -> None:
        """A new epoch, from the first frame without a result."""
        self.current.replace(None)
        self.keeper.first_finished = None
        self._waiting, self._suspects = set(), {}
        self.plan = plan = self._best_plan()
        if plan is None:
            self._request_plan()
            return
        self.epoch += 1
        first = self.keeper.begin(plan)
        for recovery in self._unresolved():
            recovery.plan, recovery.frames_again = plan.name, self.keeper.admitted - first
        for name, remote in self.remotes.items():
            if name in plan.devices:
                self._waiting.add(name)
                remote.order(Begin(self.epoch, plan.name, first))
            else:
                remote.order(Rest())
        self._begin_until = time.monotonic() + BEGIN_S
        epoch, node = self.epoch, plan.nodes[self.name]
        path = plan.libraries[node.library.digest] if node.library else None

        def dialled(device: str, purpose: str, watch: Watch) -> ssl.SSLSocket:
            return dial(node.addresses[device], device, self.credentials, hello(purpose, self.run, epoch), watch)

        def report(what: str, device: str) -> None:
            self._events.put((None, Trouble(epoch, what, device)))

        engine = self.current.replace(lambda: Engine(node, epoch, first, path, dialled, report, self.keeper))
        if engine:
            self.allocated[self.name] = engine.allocated
            engine.admit(self.keeper.admitted)
        with self.keeper.changed:
            self.keeper.changed.notify_all()

    def _request_plan(self) -> None:
        """No prepared plan fits the remaining devices: has one made while they rest."""
        there = frozenset({self.name, *self.remotes})
        for remote in self.remotes.values():
            remote.order(Rest())
        if self._replan is None:
            lost = _listed(self._addresses.keys() - there)
            raise RunError(f"devices {lost} are lost, and no plan is for the others: {_listed(there)}")
        if self._is_replanning:
            return
        self._is_replanning = True
        replan = self._replan

        def planned() -> None:
            result: PreparedPlan | EdgewrightError
            try:
                result = replan(there)
                for remote, error in self._handed_out([result], untold).items():
                    remote.lose(str(error))
            except EdgewrightError as error:
                result = error
            except Exception as error:
                result = RunError(f"planning failed: {type(error).__name__}: {error}")
            self._events.put((None, _Replanned(there, result)))

        self.say(f"no plan is prepared for {_listed(there)} alone; making one")
        threading.Thread(target=planned, name="edgewright-replan", daemon=True).start()

    def _take_plan(self, answer: _Replanned) -> None:
        """A plan that was made, or why there is none; meanwhile other devices may have been lost, or be back."""
        self._is_replanning = False
        if isinstance(answer.plan, PreparedPlan):
            self.plans.append(answer.plan)
        elif self._best_plan() is None and {self.name, *self.remotes} <= answer.devices:
            raise answer.plan
        if self.plan is None:
            self._restart()
        else:
            self._restart_if_better()

    def _note_resumed(self) -> None:
        """When results come again after a loss."""
        if (first := self.keeper.first_finished) is not None:
            for recovery in self._unresolved():
                recovery.resumed = first

    def _unresolved(self) -> list[Recovery]:
        """Losses since which there was no result."""
        return [recovery for recovery in self.recoveries if recovery.resumed is None]

    def _fail(self, error: EdgewrightError) -> None:
        with self.keeper.changed:
            self._error = self._error or error
            self.keeper.changed.notify_all()

    def _serve(self, connection: ssl.SSLSocket, peer: Peer, greeting: Hello) -> None:
        """Tensors and credits of the other devices, for the gateway's own share."""
        if greeting.purpose not in ("tensors", "credits") or greeting.run != self.run:
            return
        checked_protocol(greeting.protocol, f"device '{peer.name}'")
        try:
            self.current.serve(connection, peer.name, greeting)
        except Disconnected as end:
            self._events.put((None, Trouble(greeting.epoch, str(end), peer.name)))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
