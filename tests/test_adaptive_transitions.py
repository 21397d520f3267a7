"""Transitions between scenarios: the paper's example, random scenarios against brute force, and the judge."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import pytest

from edgewright.adaptive.steps import CellGrid, Scenario, ScenarioStep
from edgewright.adaptive.switch_check import hazards
from edgewright.adaptive.transition import SwitchPolicy, Transition, transition
from edgewright.errors import InputError

OVERLAP, FINISH, ABORT, OVERTAKE = SwitchPolicy.OVERLAP, SwitchPolicy.FINISH, SwitchPolicy.ABORT, SwitchPolicy.OVERTAKE
TIMES = {"l1": 1, "l2": 2, "l3": 4, "l4": 2, "l5": 1, "l6": 1}
ONE = ("l1", "e12", "l2", "e24", "l4", "e45", "l5", "e56", "l6")
TWO = ("l1", "e12", "l2", "e23", "l3", "e34", "l4", "e45", "l5", "e56", "l6")


class Cells:
    """A cell for every name."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.known.setdefault(name, 1 << len(self.known))


def chain(chain: Sequence[str], cells: Cells, twice: Sequence[str] = (), is_exclusive: bool = True) -> Scenario:
    """A chain of layers and edges of M fig. 5.3. Edges in `twice` have a buffer of the scenario's own; where layers are
    exclusive, a layer serves one scenario at a time, as if it wrote a byte of its own."""
    steps = []
    name = f"{len(chain) // 2 + 1} layers"
    edges = [f"{edge} of {name}" if edge in twice else edge for edge in chain[1::2]]
    for at, layer in enumerate(chain[::2]):
        read = cells[edges[at - 1]] if at else 0
        write = (cells[edges[at]] if at < len(edges) else 0) | (cells[layer] if is_exclusive else 0)
        named = tuple((edge, cells[edge]) for edge in edges[max(0, at - 1) : at + 1])
        steps.append(ScenarioStep(layer, TIMES[layer], 0, (), read, write, named))
    return Scenario(name, tuple(steps))


def pair(old: Sequence[str], new: Sequence[str], twice: Sequence[str] = (), is_exclusive: bool = True) -> Transition:
    cells = Cells()
    both = [chain(each, cells, twice, is_exclusive) for each in (old, new)]
    return transition(*both, OVERLAP, processors=2)


@pytest.mark.parametrize(
    ("old", "new", "twice", "exclusive", "shared"),
    [
        (ONE, TWO, (), 13.5, 13.5),
        (ONE, TWO, ("e12",), 12.5, 11.0),
        (TWO, ONE, (), 13.5, 13.5),
        (TWO, ONE, ("e45", "e56"), 12.5, 9.5),
        (TWO, ONE, ("e12", "e45", "e56"), 12.5, 7.0),
    ],
)
def test_delays_of_the_example(old, new, twice, exclusive, shared):
    """M fig. 5.5 without barriers, for the layer times given above: with layers that serve one scenario or both."""
    assert pair(old, new, twice).delay(0.5) == exclusive
    assert pair(old, new, twice, is_exclusive=False).delay(0.5) == shared


def test_arrivals_in_each_step_of_the_example():
    for old, new, naive in (
        (ONE, TWO, [17.5, 16.5, 14.5, 12.5, 11.5]),
        (TWO, ONE, [17.5, 16.5, 14.5, 10.5, 8.5, 7.5]),
    ):
        one = pair(old, new)
        arrivals = [start + 0.5 for start in one.old.starts]
        assert [replace(one, policy=FINISH).delay(at) for at in arrivals] == naive
        assert all(one.delay(at) <= delay for at, delay in zip(arrivals, naive, strict=True))


def test_waits_name_the_buffer_that_is_overwritten():
    one = pair(ONE, TWO, is_exclusive=False)
    assert one.needs == ((2,), (3,), (0,), (4,), (5,), (0,))
