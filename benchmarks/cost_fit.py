"""Coefficients from counts: non-negative least squares of relative errors, those of large stages first of all.

Errors are relative to what is estimated, not to what was counted (a gamma model's quasi-likelihood): otherwise
estimates of work whose counts vary, such as loops that compilers see whole, would be too low on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgewright.kernels.cost.model import FitError
from edgewright.kernels.cost.work import ACTIVATION, KernelWork, general
from edgewright.network import Array

LARGE = 20_000  # instructions: smaller stages weigh less, since whole networks hardly notice them
SWEEPS = 100  # over all kinds of work, at most
CALL = 0.05 / 200  # error that an instruction for each call counts as: few take thousands, whatever few samples say
ROUNDS = 3  # of fits, each relative to the estimates of the one before
STAGE = KernelWork("stage", {"calls": 1})  # what every stage costs beside its steps


@dataclass(frozen=True)
class Sample:
    """A stage that was run: the work it consists of, and the instructions it took."""

    plan: str
    works: tuple[KernelWork, ...]  # one of each kind
    instructions: int


def fit(samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """Instructions for each amount of each kind of work: none negative, relative errors least in squares."""
    found = _fitted(samples)
    rest = [_generalised(sample) for sample in samples if len(sample.works) == 1]
    for kind, coefficients in _fitted([sample for sample in rest if sample is not None]).items():
        if kind.startswith("other"):
            found[kind] = coefficients
    found["other"] = _largest([values for kind, values in found.items() if kind.startswith("other")])
    return found


def predicted(coefficients: Mapping[str, Mapping[str, float]], sample: Sample) -> float:
    """Instructions of a sample by these coefficients."""
    return sum(
        coefficients.get(kind, {}).get(key, 0.0) * amount
        for work in (STAGE, *sample.works)
        for kind, key, amount in work.terms()
    )


def errors(coefficients: Mapping[str, Mapping[str, float]], samples: Sequence[Sample]) -> FitError:
    """How far these coefficients are from counts: of stages, and of nine in ten plans all stages together."""
    found = [(sample, predicted(coefficients, sample)) for sample in samples]
    totals: dict[str, tuple[float, int]] = {}
    for sample, guess in found:
        before = totals.get(sample.plan, (0.0, 0))
        totals[sample.plan] = (before[0] + guess, before[1] + sample.instructions)
    stages = [abs(guess / sample.instructions - 1) for sample, guess in found]
    plans = [abs(guess / count - 1) for guess, count in totals.values()]
    return FitError(float(np.median(stages)), max(stages), float(np.quantile(plans, 0.9)))


def nnls(a: Array, b: Array) -> Array:
    """The x >= 0 for which |a x - b| is least (Lawson and Hanson 1974, algorithm NNLS).

    >>> nnls(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, -1.0])).tolist()
    [2.0, 0.0]
    """
    return _solved(a.T @ a, a.T @ b, np.zeros(a.shape[1]))


def _solved(gram: Array, moment: Array, start: Array) -> Array:
    """The x >= 0 for which x (gram x / 2 - moment) is least, found from a start that may be near."""
    passive = start > 0
    x = _moved_inside(gram, moment, start, passive)
    limit = 1e-10 * max(1.0, float(np.abs(moment).max(initial=0)))
    for _ in range(3 * len(moment)):
        slope = np.where(passive, -np.inf, moment - gram @ x)
        if passive.all() or slope.max() <= limit:
            break
        passive[int(slope.argmax())] = True
        x = _moved_inside(gram, moment, x, passive)
    return x


def by_kinds(a: Array, b: Array, kinds: Sequence[str]) -> Array:
    """The same as `nnls`, kind after kind while the others stay: few samples have work of several."""
    gram, moment = a.T @ a, a.T @ b
    blocks = [np.array([at for at, kind in enumerate(kinds) if kind == name]) for name in dict.fromkeys(kinds)]
    x = np.zeros(len(moment))
    for _ in range(SWEEPS):
        before = x.copy()
        for block in blocks:
            own = gram[np.ix_(block, block)]
            x[block] = _solved(own, moment[block] - gram[block] @ x + own @ x[block], x[block])
        if np.abs(x - before).max(initial=0) < 1e-6:
            break
    return x


def _moved_inside(gram: Array, moment: Array, x: Array, passive: Array) -> Array:
    """The least point over the passive set; what would turn negative on the way leaves the set."""
    while True:
        target = np.zeros_like(x)
        chosen = np.flatnonzero(passive)
        target[chosen] = np.linalg.pinv(gram[np.ix_(chosen, chosen)], 1e-13, hermitian=True) @ moment[chosen]
        negative = passive & (target <= 0)
        if not negative.any():
            return target
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(negative, x / (x - target), np.inf)
        x = x + float(np.nan_to_num(reach, nan=0.0).min()) * (target - x)
        passive &= x > 1e-12
        x = np.where(passive, x, 0.0)


def _fitted(samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """Coefficients for errors relative to estimates, which begin as the counts."""
    sizes = [float(sample.instructions) for sample in samples]
    for _ in range(ROUNDS):
        found = _relative(samples, sizes)
        guesses = [predicted(found, sample) / sample.instructions for sample in samples]
        sizes = [s.instructions * min(2.0, max(0.5, guess)) for s, guess in zip(samples, guesses, strict=True)]
    return found


def _relative(samples: Sequence[Sample], sizes: Sequence[float]) -> dict[str, dict[str, float]]:
    """Coefficients for which errors relative to these sizes are least in squares."""
    keys: dict[tuple[str, str], int] = {}
    rows = []
    for sample in samples:
        row: dict[int, float] = {}
        for work in (STAGE, *sample.works):
            for kind, key, amount in work.terms():
                if amount:
                    at = keys.setdefault((kind, key), len(keys))
                    row[at] = row.get(at, 0.0) + amount
        rows.append(row)
    matrix, wanted = np.zeros((len(samples), len(keys))), np.zeros(len(samples))
    for index, (sample, size, row) in enumerate(zip(samples, sizes, rows, strict=True)):
        weight = min(1.0, sample.instructions / LARGE) ** 0.5 / size
        wanted[index] = weight * sample.instructions
        for at, amount in row.items():
            matrix[index, at] = weight * amount
    calls = [at for (_, key), at in keys.items() if key == "calls"]
    bounds = np.zeros((len(calls), len(keys)))
    bounds[range(len(calls)), calls] = CALL
    matrix, wanted = np.vstack((matrix, bounds)), np.append(wanted, np.zeros(len(calls)))
    scale = np.maximum(np.abs(matrix).max(axis=0, initial=0.0), 1e-30)
    values = by_kinds(matrix / scale, wanted, [kind for kind, _ in keys]) / scale
    found: dict[str, dict[str, float]] = {}
    for (kind, key), at in keys.items():
        found.setdefault(kind, {})
        if values[at] > 0 or key.startswith(ACTIVATION):
            found[kind][key] = float(values[at])
    return found


def _generalised(sample: Sample) -> Sample | None:
    """The sample as work of no particular kind; None for products, which all have kinds of their own."""
    work = sample.works[0]
    if work.amounts.get("macs") or "outputs" not in work.amounts:
        return None
    return Sample(sample.plan, (general(work),), sample.instructions)


def _largest(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    keys = {key for values in found for key in values}
    return {key: max(values.get(key, 0.0) for values in found) for key in sorted(keys)}
