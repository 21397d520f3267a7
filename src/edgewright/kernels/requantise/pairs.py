"""Sums and products of two bytes in integers: multipliers that give the stored answer to every pair, proven by trial.

A layer between scales rounds a real number. Near a tie its own float arithmetic decides, so that multipliers are not
computed but searched for near the ratios of the scales, and each is tried on all 65,536 pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log2

import numpy as np

from ...network import Arithmetic, Array, DType, Quant, Region, Tensor
from ...network.kernels import Operand, compute
from ...network.operators import Binary, BinaryKind

REACH = 12  # how far from the ratios multipliers are looked for
MOST_NEAR = 4096  # pairs near a tie; where there are more, ties are the rule and no multiplier parts them
NONE = 1 << 62  # no limit
Storage = tuple[DType, Quant]


@dataclass(frozen=True)
class PairRule:
    """(value + start) / 2^shift, rounded down; `to_even`: to the nearest, halves to even numbers of steps.

    The value is first * a + second * b for a sum, first * (a - zero of a) * (b - zero of b) for a product.
    """

    first: int
    second: int  # 0: a product
    start: int
    shift: int
    low: int  # the answer is kept between these
    high: int
    to_even: bool = False
    odd: int = 0  # to_even: 1 where the odd answers count as even, since the zero point is odd


@dataclass(frozen=True)
class _PairProblem:
    values: tuple[Array, Array]  # of each operand, in steps: those of a sum as stored
    ratios: tuple[float, float]  # of the operands' steps to the output's
    start: float  # in steps of the output
    answers: Array
    zero: int


def pair_rule(op: Binary, a: Storage, b: Storage, result: Storage, arithmetic: Arithmetic) -> PairRule | None:
    """The rule of a layer whose operands and result are bytes with one scale each; None where there is none."""
    if op.kind in (BinaryKind.ADD, BinaryKind.SUB):
        return _sum_rule(_pair_problem(op, a, b, result, arithmetic))
    if op.kind is BinaryKind.MUL:
        return _product_rule(_pair_problem(op, a, b, result, arithmetic))
    return None


def _pair_problem(op: Binary, a: Storage, b: Storage, result: Storage, arithmetic: Arithmetic) -> _PairProblem:
    every = []
    for dtype, _ in (a, b):
        info = np.iinfo(dtype.numpy)
        every.append(np.arange(int(info.min), int(info.max) + 1))
    shapes = (256, 1), (1, 256)
    operands = [
        Operand(values.astype(dtype.numpy).reshape(shape), Region.whole(shape), Tensor(name, shape, dtype, quant))
        for name, values, shape, (dtype, quant) in zip("ab", every, shapes, (a, b), strict=True)
    ]
    whole = Region.whole((256, 256))
    answers = compute(op, whole, operands, Tensor("y", (256, 256), *result), arithmetic).astype(np.int64)
    (ratio_a, ratio_b), zero = (q.scale[0] / result[1].scale[0] for _, q in (a, b)), result[1].zero[0]
    if op.kind is BinaryKind.MUL:
        values = every[0] - a[1].zero[0], every[1] - b[1].zero[0]
        return _PairProblem(values, (a[1].scale[0] * ratio_b, 0.0), float(zero), answers, zero)
    if op.kind is BinaryKind.SUB:
        ratio_b = -ratio_b
    start = zero - ratio_a * a[1].zero[0] - ratio_b * b[1].zero[0]
    return _PairProblem((every[0], every[1]), (ratio_a, ratio_b), start, answers, zero)


def _sum_rule(task: _PairProblem) -> PairRule | None:
    a, b = (task.values[0].reshape(256, 1), task.values[1].reshape(1, 256))
    exact = task.ratios[0] * a + task.ratios[1] * b + task.start
    reach = np.abs(exact).max() + 256 * sum(map(abs, task.ratios)) + 2
    shift = min(30, floor(log2((1 << 31) / reach)))
    if shift < 1:
        return None
    first, second = (round(ratio * (1 << shift)) for ratio in task.ratios)
    if second == 0 or first == 0:
        return None
    near = np.abs(exact - np.rint(exact - 0.5) - 0.5) < REACH * 1024 / (1 << shift) + 1e-3
    start = task.start * (1 << shift)
    for i, j in _ring(REACH if near.sum() <= MOST_NEAR else 1):
        value = (first + i) * a + (second + j) * b
        if _start(value[near], task.answers[near], task.answers, shift) is not None:
            found = _start(value, task.answers, task.answers, shift)
            if found is not None and np.abs(value).max() + abs(found) < 1 << 31:
                return _rule(task, first + i, second + j, found, shift)
        if i == j == 0 and start == round(start) and (rule := _even_rule(task, value, first, second, shift, start)):
            return rule
    return None


def _even_rule(task: _PairProblem, value: Array, first: int, second: int, shift: int, start: float) -> PairRule | None:
    """For two scales whose ratio is a whole number: halves are exact and round to even."""
    for odd in (task.zero & 1, 0):
        rule = _rule(task, first, second, round(start), shift, odd)
        if np.array_equal(answers(rule, value), task.answers):
            return rule
    return None


def _ring(reach: int) -> list[tuple[int, int]]:
    """Small steps in two directions, the smallest first."""
    steps = range(-reach, reach + 1)
    return sorted(((i, j) for i in steps for j in steps), key=lambda step: abs(step[0]) + abs(step[1]))


def _product_rule(task: _PairProblem) -> PairRule | None:
    """The product of two bytes times a multiplier of up to 31 bits, in 64 bits; a mere shift stays in 32."""
    product = task.values[0].reshape(256, 1) * task.values[1].reshape(1, 256)
    ratio = task.ratios[0]
    shift = round(-log2(ratio))
    if 1 <= shift <= 14 and ratio == 2.0**-shift:
        rule = _even_rule(task, product, 1, 0, shift, task.zero << shift)
        if rule is not None:
            return rule
    for shift in (32, 36, 40):
        first = round(ratio * (1 << shift))
        for i in range(REACH):
            for multiplier in {first - i, first + i}:
                if not 0 < multiplier < 1 << 31:
                    continue
                found = _start(product * multiplier, task.answers, task.answers, shift)
                if found is not None:
                    return _rule(task, multiplier, 0, found, shift)
    return None


def _rule(task: _PairProblem, first: int, second: int, start: int, shift: int, odd: int | None = None) -> PairRule:
    low, high = int(task.answers.min()), int(task.answers.max())
    return PairRule(first, second, start, shift, low, high, odd is not None, odd or 0)


def _start(value: Array, wanted: Array, every: Array, shift: int) -> int | None:
    """What to add to the values so that all have their answers; None where nothing does."""
    low, high = every.min(), every.max()
    least = np.where(wanted > low, (wanted << shift) - value, -NONE).max(initial=-NONE)
    most = np.where(wanted < high, ((wanted + 1) << shift) - value, NONE).min(initial=NONE) - 1
    if least > most:
        return None
    return int(least if most >= NONE - 1 else most if least <= -NONE else (least + most) // 2)


def answers(rule: PairRule, value: Array) -> Array:
    """What the rule makes of values, as the emitted code computes it."""
    value = value + rule.start
    if rule.to_even:
        value = value + (1 << (rule.shift - 1)) - 1 + (((value >> rule.shift) ^ rule.odd) & 1)
    return np.clip(value >> rule.shift, rule.low, rule.high)
