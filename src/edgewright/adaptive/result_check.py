"""Random frames, and a check that a running application's results are correct, complete and in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..emit.deployment.trial import is_same
from ..network import Array, Network, random_inputs
from ..network.kernels import execute
from .runtime import AdaptiveResult
from .scenarios import AdaptiveApplication

VARIETY = 8  # different frames


@dataclass(frozen=True)
class FrameSource:
    """Frames of random numbers: number n is always the same."""

    application: AdaptiveApplication
    variety: int = VARIETY

    @cached_property
    def _values(self) -> tuple[Mapping[str, Array], ...]:
        network = self.application.scenarios[0].network
        return tuple(random_inputs(network, seed=n) for n in range(self.variety))

    def frame(self, number: int) -> Mapping[str, Array]:
        return self._values[number % self.variety]

    def frames(self, count: int | None = None) -> Iterator[Mapping[str, Array]]:
        """The first `count` frames, or an endless sequence."""
        number = 0
        while count is None or number < count:
            yield self.frame(number)
            number += 1

    @cached_property
    def _references(self) -> dict[tuple[str, int], tuple[Array, ...]]:
        return {}

    def expected(self, scenario: str, number: int) -> tuple[Array, ...]:
        """The outputs of a frame by the reference execution of the scenario's network."""
        key = scenario, number % self.variety
        if key not in self._references:
            network = self.application.scenario(scenario).network
            first: Network = self.application.scenarios[0].network
            given = self.frame(number)
            values = {mine: given[name] for mine, name in zip(network.inputs, first.inputs, strict=True)}
            results = execute(network, values)
            self._references[key] = tuple(results[name] for name in dict.fromkeys(network.outputs))
        return self._references[key]


@dataclass
class ResultCheck:
    """Counts results that are wrong, lost, doubled or out of order."""

    source: FrameSource
    frames: int = 0
    wrong: int = 0
    lost: int = 0
    doubled: int = 0
    reordered: int = 0
    by_scenario: dict[str, int] = field(default_factory=dict)
    _next: int = 0
    _missing: set[int] = field(default_factory=set)

    def begin(self) -> None:
        """Starts a new numbering of frames from 0."""
        self._next = 0
        self._missing.clear()

    def take(self, result: AdaptiveResult) -> None:
        self.frames += 1
        self.by_scenario[result.scenario] = self.by_scenario.get(result.scenario, 0) + 1
        if result.frame in self._missing:  # late rather than lost
            self._missing.remove(result.frame)
            self.lost -= 1
            self.reordered += 1
        elif result.frame < self._next:
            self.doubled += 1
        else:
            skipped = range(self._next, result.frame)
            self._missing.update(skipped)
            self.lost += len(skipped)
            self._next = result.frame + 1
        expected = self.source.expected(result.scenario, result.frame)
        pairs = zip(result.outputs.values(), expected, strict=True)
        self.wrong += not all(is_same(found, right) for found, right in pairs)

    def end(self, count: int) -> None:
        """Ends the check after this many frames."""
        self.lost += max(0, count - self._next)
        self._next = max(count, self._next)

    @property
    def is_right(self) -> bool:
        return not (self.wrong or self.lost or self.doubled or self.reordered)

    @property
    def said(self) -> str:
        return f"{self.wrong} wrong, {self.lost} lost, {self.doubled} doubled, {self.reordered} out of order"

    def to_dict(self) -> dict[str, object]:
        counts = {name: getattr(self, name) for name in ("frames", "wrong", "lost", "doubled", "reordered")}
        return {**counts, "by_scenario": dict(self.by_scenario)}
