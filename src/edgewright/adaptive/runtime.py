"""Runs scenarios on this machine: `with adaptive("app.toml") as a: a.request("eco"); for y in a(frames): …`.

The library is that of `adapt --compile`, compiled for this machine. It decides when scenarios switch.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Condition, Lock, Thread
from types import TracebackType
from typing import Any, Self

import numpy as np

from ..emit.deployment import DeploymentLibrary
from ..emit.native import FLAGS, aligned_array, compiler
from ..errors import EdgewrightError, InputError
from ..kernels.printing.constants import C_TYPES
from ..network import Array
from ..platform.schema import suggestion
from ..platform.target import TARGETS
from ..program.switching import SwitchPolicy
from .deploying import SwitchingApplication, switch_schedule, with_policy
from .front import SwitchLayout
from .rules import switching_rules
from .scenarios import AdaptiveApplication, load_adaptive

AHEAD = 4  # results that wait before frames are held back
MILLISECONDS = 1000

Frame = Mapping[str, Array] | Array


@dataclass(frozen=True)
class AdaptiveResult:
    """The outputs of one frame, and the scenario that computed it."""

    frame: int
    scenario: str
    outputs: Mapping[str, Array]
    started: float  # seconds, by the clock of `time.perf_counter`
    ended: float


@dataclass(frozen=True, slots=True)
class MeasuredSwitch:
    """A request, and the time of the scenario's first result."""

    scenario: str
    requested: float
    delay: float  # seconds


def adaptive(what: AdaptiveApplication | str | Path, policy: SwitchPolicy | str | None = None) -> Adaptive:
    """An application with scenarios, planned and compiled for this machine; `policy` overrides the file's."""
    application = on_this_machine(what if isinstance(what, AdaptiveApplication) else load_adaptive(Path(what)))
    application = application if policy is None else with_policy(application, SwitchPolicy(policy))
    switching = SwitchingApplication(application, application.file.adapt.policy)
    return Adaptive(switching, switching.layout)


def on_this_machine(application: AdaptiveApplication) -> AdaptiveApplication:
    """The application for this machine's processor, without the limits of its board."""
    return replace(application, board=None, target=TARGETS["host"])


class Adaptive:
    """A running application with scenarios. Called with frames, it yields their results in order.

    A frame is an array, or a mapping from the inputs of the first scenario to arrays.
    """

    def __init__(self, switching: SwitchingApplication, layout: SwitchLayout) -> None:
        self.application, self.policy, self.layout = switching.application, switching.policy, layout
        self.scenarios = tuple(one.name for one in self.application.scenarios)
        self.switches: list[MeasuredSwitch] = []  # completed ones
        self.frame_time = 0.0  # seconds of the last frame
        self._rules = switching_rules(self.application.file)
        self._networks = {one.name: one.network for one in self.application.scenarios}
        self._keep = TemporaryDirectory(prefix="edgewright-")
        self.library = switching.library(layout)
        self._loaded = _loaded(self.library, Path(self._keep.name))
        self._stream: _Stream | None = None
        # The pending request: the scenario, its time, and the number of switches before it.
        self._asked: tuple[str, float, int] | None = None
        self._guard = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stops running streams and releases everything."""
        if self._stream is not None:
            self._stream.stop()
        self._keep.cleanup()

    @property
    def current(self) -> str:
        """The current scenario."""
        return self.scenarios[self._call("current")]

    @property
    def is_switching(self) -> bool:
        """Whether the last request still waits for its first result."""
        return self._asked is not None

    def request(self, scenario: str) -> None:
        """Requests a scenario, from any thread. The last request wins."""
        if scenario not in self.scenarios:
            near = suggestion(scenario, self.scenarios)
            raise InputError(f'"{scenario}" is no scenario{near} (scenarios: {", ".join(self.scenarios)})')
        with self._guard:
            is_new = scenario != self.current
            self._asked = (scenario, time.perf_counter(), self._call("host_switches")) if is_new else None
            self._call("request", self.scenarios.index(scenario))

    def release(self) -> None:
        """Withdraws the request, so that rules decide again."""
        if self._rules.rules:
            self._call("release")

    def signal(self, name: str, value: float) -> None:
        """Sets the value of a signal that rules read."""
        if name not in self._rules.signals:
            known = ", ".join(self._rules.signals) or "none, since there are no rules"
            raise InputError(
                f'no rule reads the signal "{name}"{suggestion(name, self._rules.signals)} (signals: {known})'
            )
        function = self._loaded[f"{self.library.name}_signal"]
        function(ctypes.c_int32(self._rules.signals.index(name)), ctypes.c_float(value))

    def __call__(self, frames: Iterable[Frame]) -> Generator[AdaptiveResult, None, None]:
        """Yields the results of the frames in order, while the next ones are computed."""
        if self._stream is not None:
            raise InputError("this application is running; read its results to the end before new frames")
        self._stream = stream = _Stream(self, iter(frames))
        try:
            yield from stream.results()
        finally:
            stream.stop()
            self._stream = None

    def compute(self, number: int, frame: Frame) -> AdaptiveResult:
        """Computes one frame with the current scenario, in the calling thread."""
        inputs, outputs = self._arrays(frame)
        ends = (ctypes.c_void_p * (len(inputs) + len(outputs)))(*(x.ctypes.data for x in (*inputs, *outputs.values())))
        if self._rules.dwell:
            self._call("time", int(time.monotonic() * MILLISECONDS) & 0xFFFFFFFF)
        started = time.perf_counter()
        which = self._call("host_step", ends)
        ended = time.perf_counter()
        if which < 0:
            raise EdgewrightError(f"a frame ended with {which}; please report this")
        scenario, self.frame_time = self.scenarios[which], ended - started
        self._note(scenario, ended)
        return AdaptiveResult(number, scenario, self._named(scenario, outputs), started, ended)

    def step_times(self, scenario: str, frame: Frame) -> Array:
        """Seconds of each step of a frame, measured at its switch points; of the whole frame if it has none."""
        self._call("request", self.scenarios.index(scenario))
        count = len(self.layout.scenarios[scenario].scenario.steps)
        times = np.zeros(count + len(self.layout.plans[scenario].program.stages) + 2)
        self.compute(0, frame)
        self._loaded[f"{self.library.name}_host_note"](ctypes.c_void_p(times.ctypes.data), ctypes.c_int32(len(times)))
        result = self.compute(0, frame)
        self._loaded[f"{self.library.name}_host_note"](ctypes.c_void_p(times.ctypes.data), ctypes.c_int32(0))
        return _between_steps(self.layout, scenario, times[times > 0], result)

    def on_overtake(self, callback: Any) -> None:
        """Registers a callback of the C code for points where a new scenario may overtake the current frame; `callback`
        must be kept alive."""
        self._loaded[f"{self.library.name}_host_on_overtake"](callback)

    def _note(self, scenario: str, ended: float) -> None:
        """Completes the last request if this is its first result: of its scenario, after a switch."""
        with self._guard:
            if self._asked is None or self._asked[0] != scenario:
                return
            _, requested, before = self._asked
            if self._call("host_switches") > before and requested <= ended:
                self.switches.append(MeasuredSwitch(scenario, requested, ended - requested))
                self._asked = None

    def _arrays(self, frame: Frame) -> tuple[list[Array], dict[str, Array]]:
        """The arrays of a frame in the order of the step function's parameters, checked, and arrays for the outputs."""
        first = self.application.scenarios[0].network
        given = frame if isinstance(frame, Mapping) else {first.inputs[0]: frame}
        if strangers := given.keys() - set(first.inputs):
            raise InputError(
                f"the frame has '{min(strangers)}', which is no input; give an array for each of "
                f"{', '.join(first.inputs)}"
            )
        inputs = []
        for name in first.inputs:
            if name not in given:
                raise InputError(f"the frame has no '{name}'; give an array for each of {', '.join(first.inputs)}")
            tensor, value = first.tensors[name], np.asarray(given[name])
            if value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
                raise InputError(
                    f"'{name}' of a frame is {value.dtype}{list(value.shape)}; expected "
                    f"{tensor.dtype.numpy}{list(tensor.shape)}"
                )
            inputs.append(aligned_array(np.ascontiguousarray(value)))
        tensors = {name: first.tensors[name] for name in dict.fromkeys(first.outputs)}
        return inputs, {name: np.empty(tensor.shape, tensor.dtype.numpy) for name, tensor in tensors.items()}

    def _named(self, scenario: str, outputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by the scenario's own names."""
        return dict(zip(dict.fromkeys(self._networks[scenario].outputs), outputs.values(), strict=True))

    def _call(self, function: str, *arguments: Any) -> int:
        return int(self._loaded[f"{self.library.name}_{function}"](*arguments))


@dataclass
class _Stream:
    """Frames in progress: one thread, or two that take turns under `OVERLAP`."""

    owner: Adaptive
    frames: Iterator[Frame]
    _change: Condition = field(default_factory=Condition)
    _taken: int = 0
    _given: int = 0
    _done: dict[int, AdaptiveResult] = field(default_factory=dict)
    _threads: list[Thread] = field(default_factory=list)
    _last: int | None = None  # number of frames, once known
    _error: BaseException | None = None
    _is_stopped: bool = False

    def results(self) -> Iterator[AdaptiveResult]:
        if self.owner.policy is SwitchPolicy.OVERLAP:
            return self._from_threads()
        return self._one_by_one()

    def _one_by_one(self) -> Iterator[AdaptiveResult]:
        callback = _CALLBACK(self._overtake)
        self.owner.on_overtake(callback)
        while (taken := self._take()) is not None:
            self._put(self.owner.compute(*taken))
            while self._given in self._done:
                yield self._next()
            if self._error is not None:
                raise self._error

    def _overtake(self) -> None:
        """Called when a scenario has taken over: computes its first frame before the current one has ended."""
        try:
            if (taken := self._take()) is not None:
                self._put(self.owner.compute(*taken))
        except BaseException as error:  # called from C: re-raised after C returns
            self._error = error

    def _from_threads(self) -> Iterator[AdaptiveResult]:
        self._threads = [Thread(target=self._work, daemon=True) for _ in range(2)]
        for thread in self._threads:
            thread.start()
        while True:
            with self._change:
                while self._given not in self._done and self._error is None and self._given != self._last:
                    self._change.wait()
                if self._error is not None:
                    raise self._error
                if self._given == self._last:
                    return
            yield self._next()

    def _work(self) -> None:
        try:
            while (taken := self._take()) is not None:
                self._put(self.owner.compute(*taken))
        except BaseException as error:
            with self._change:
                self._error = error
                self._change.notify_all()

    def _take(self) -> tuple[int, Frame] | None:
        """The next frame, with its number; None if there are no more."""
        with self._change:
            while self._taken - self._given >= AHEAD and not self._is_stopped and self._threads:
                self._change.wait()
            if self._is_stopped or self._last is not None:
                return None
            try:
                frame = next(self.frames)
            except StopIteration:
                self._last = self._taken
                self._change.notify_all()
                return None
            self._taken += 1
            return self._taken - 1, frame

    def _put(self, result: AdaptiveResult) -> None:
        with self._change:
            self._done[result.frame] = result
            self._change.notify_all()

    def _next(self) -> AdaptiveResult:
        with self._change:
            result = self._done.pop(self._given)
            self._given += 1
            self._change.notify_all()
        return result

    def stop(self) -> None:
        with self._change:
            self._is_stopped = True
            self._change.notify_all()
        for thread in self._threads:
            thread.join()


_CALLBACK = ctypes.CFUNCTYPE(None)


def _between_steps(layout: SwitchLayout, scenario: str, times: Array, result: AdaptiveResult) -> Array:
    """Times of steps from those of switch points: the start of each stage, after each turn, and the end."""
    if not len(times):
        return np.array([result.ended - result.started])
    begins, at = [], 0
    for count in switch_schedule(layout).steps[scenario]:
        begins += [times[at + n] for n in range(count)]
        at += 1 + (count if count > 1 else 0)
    return np.diff(np.array([*begins, times[-1]]))


def _loaded(library: DeploymentLibrary, folder: Path) -> ctypes.CDLL:
    """The library with `c/host_switch.c`, compiled and loaded."""
    name, driver = library.name, f"{library.name}_host_switch"
    text = (resources.files(__package__) / "c" / "host_switch.c").read_text(encoding="utf-8")
    text = text.replace('"app_.c"', f'"{name}.c"').replace("APP_", f"{name.upper()}_").replace("app_", f"{name}_")
    where = folder.resolve()
    for file, content in {**library.files, f"{driver}.c": text, f"{name}_host_step.h": _step(library)}.items():
        (where / file).write_bytes(content.encode() if isinstance(content, str) else content)
    sources = [f"{driver}.c", *(file for file in library.sources if file != f"{name}.c")]
    flags = [*FLAGS, "-shared", "-fPIC", "-pthread", "-I.", "-o", f"{driver}.so"]
    compiler().run([*flags, *sources, "-lm"], where)
    return ctypes.CDLL(str(where / f"{driver}.so"))


def _step(library: DeploymentLibrary) -> str:
    """C code for a frame whose inputs and outputs are pointers; rows of pulled inputs are copied from whole frames."""
    part = library.deployment.parts[0]
    pulled, lines, arguments = library.code.deployment.plans[part.name].pulled, [], []
    for at, name in enumerate((*part.network.inputs, *dict.fromkeys(part.network.outputs))):
        arguments.append(f"ends[{at}]")
        if name in pulled:
            row, ctype = part.network.tensors[name].strides[1], C_TYPES[part.network.tensors[name].dtype.value]
            lines += [
                f"static void host_pull_{at}(void *context, int32_t row, {ctype} *target)",
                "{",
                f"    memcpy(target, (const uint8_t *)context + row * {row}, {row});",
                "}",
            ]
            arguments.insert(-1, f"host_pull_{at}")
    call = f"{library.name}_step({', '.join(arguments)})"
    return "\n".join(
        [*lines, f"int32_t {library.name}_host_step(void *const *ends)", "{", f"    return {call};", "}", ""]
    )
