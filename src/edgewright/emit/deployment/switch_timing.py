"""Times of scenarios that switch, as a trial on the virtual board has measured them, in instructions.

A request comes just after a switch point. Its delay ends with the new scenario's first result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from .switch_trial import SwitchBoardTrial

SWITCH = 2000  # instructions beyond the wait and the new frame that a switch may take


@dataclass(frozen=True)
class SwitchTiming:
    """Instructions of frames, of waits for a switch point and of delays."""

    trial: SwitchBoardTrial

    @cached_property
    def frames(self) -> Mapping[str, int]:
        """Of each scenario, the longest frame without a request."""
        found: dict[str, int] = {}
        for (name, _), instructions in self._frames_of_inputs.items():
            found[name] = max(instructions, found.get(name, 0))
        return found

    @cached_property
    def _frames_of_inputs(self) -> Mapping[tuple[str, int], int]:
        """By scenario and input, which some kernels are slower for, the longest frame without a request."""
        found: dict[tuple[str, int], int] = {}
        for one in self.trial.result.quiet:
            instructions = one.begun.instructions(one.ended, self.trial.run.machine)
            found[one.scenario, one.variant] = max(instructions, found.get((one.scenario, one.variant), 0))
        return found

    @cached_property
    def waits(self) -> Mapping[str, int]:
        """Of each scenario, the longest time from one switch point to the next, or to the frame's beginning or end."""
        found: dict[str, int] = {}
        for one in self.trial.result.quiet:
            wait = self.trial.run.machine.instructions((0, 0), (0, one.longest_wait))
            found[one.scenario] = max(wait, found.get(one.scenario, 0))
        return found

    @property
    def worst_wait(self) -> float:
        """The longest wait as a share of its frame."""
        return max(wait / self.frames[name] for name, wait in self.waits.items())

    @cached_property
    def delays(self) -> tuple[tuple[str, str, int], ...]:
        """(old, new, instructions) of each switch, in the order of the trial."""
        return tuple(
            (one.old, one.new, one.requested.instructions(one.ended, self.trial.run.machine))
            for one in self.trial.result.switches
        )

    @property
    def worst_excess(self) -> int:
        """The most instructions by which a delay exceeds the longest wait and a frame of the same input, if there was
        one; negative where none does."""
        switches = zip(self.trial.result.switches, self.delays, strict=True)
        return max(
            delay - self.waits[old] - self._frames_of_inputs.get((new, one.variant), self.frames[new])
            for one, (old, new, delay) in switches
        )
