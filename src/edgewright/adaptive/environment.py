"""The environment of an application over time: signals, requests, power limits, a battery; and its file."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, pairwise
from math import floor, isfinite
from pathlib import Path
from typing import Annotated, Self
from zlib import crc32

import numpy as np
from pydantic import Field, StrictInt, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ..errors import InputError
from ..platform.schema import Entry, Joules, JoulesOrZero, Seconds, SecondsOrZero, Watts, read_toml
from ..platform.units import parse_time, show

MOST_SAMPLES = 1_000_000  # of all signals
Label = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=64)]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Interpolation(Enum):
    """The value of a signal between two times of its table."""

    HOLD = "hold"  # the value of the earlier time
    LINEAR = "linear"  # linear interpolation


class SignalEntry(Entry):
    """A signal over time, written in the file or in a CSV file."""

    name: Label = Field(description="the name that rules use")
    times: tuple[SecondsOrZero, ...] = Field(
        default=(), max_length=100_000, description='a list of rising times, such as [0, "0.1 h"]'
    )
    values: tuple[Real, ...] = Field(
        default=(), max_length=100_000, description="a list of numbers, one for each of the times"
    )
    file: Label | None = Field(
        default=None, description="a CSV file with a column `time` and one headed by the signal's name"
    )
    between: Interpolation = Field(
        default=Interpolation.HOLD, description='"hold" for steps, or "linear" for straight lines'
    )
    noise: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="how far every sample may lie from the value, a number from 0",
    )


class PowerLimitEntry(Entry):
    """The most power that the application may take during an interval."""

    begin: SecondsOrZero = Field(alias="from", description='a time, such as "0.1 h"')
    end: Seconds = Field(alias="until", description='a time, such as "1 h"')
    power: Watts = Field(description='a power, such as "12 W"')


class TimedRequestEntry(Entry):
    """An explicit request."""

    time: SecondsOrZero = Field(description='a time, such as "30 min"')
    scenario: Label = Field(description="the name of a scenario")


class BatteryEntry(Entry):
    """The energy available to the application."""

    capacity: Joules = Field(description='an energy, such as "52 Wh"')
    signal: Label | None = Field(
        default=None, description="the signal by which rules read the charge, from 1 (full) to 0 (empty)"
    )
    times: tuple[SecondsOrZero, ...] = Field(
        default=(), max_length=1000, description='a list of rising times, such as [0, "2 h"]'
    )
    charge: tuple[JoulesOrZero, ...] = Field(
        default=(),
        max_length=1000,
        description='a list of the least energies that must be left at these times, such as ["52 Wh", 0]',
    )


class EnvironmentFile(Entry):
    """The whole file."""

    duration: Seconds = Field(description='a time, such as "2 h"')
    sample: Seconds = Field(
        default=1.0, description='the time between two samples of signals that are linear or noisy, such as "1 s"'
    )
    seed: StrictInt = Field(default=0, ge=0, lt=1 << 63, description="a whole number from which noise is made")
    signals: tuple[SignalEntry, ...] = Field(
        default=(), alias="signal", max_length=100, description="a table headed [[signal]], or none"
    )
    limits: tuple[PowerLimitEntry, ...] = Field(
        default=(), alias="limit", max_length=1000, description="a table headed [[limit]], or none"
    )
    requests: tuple[TimedRequestEntry, ...] = Field(
        default=(), alias="request", max_length=100_000, description="a table headed [[request]], or none"
    )
    battery: BatteryEntry | None = Field(default=None, description="a table headed [battery], or none")

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> Self:
        for key, problem in _broken_rules(self):
            raise PydanticCustomError("rule", "{problem}", {"key": key, "problem": problem})
        return self


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal over time. It has no value before the first time, and keeps its last value."""

    name: str
    times: tuple[float, ...]
    values: tuple[float, ...]
    is_linear: bool = False
    noise: float = 0.0  # samples are uniform within this distance of the value

    @property
    def is_sampled(self) -> bool:
        """Whether it changes between the times of its table."""
        return self.is_linear or self.noise > 0


@dataclass(frozen=True, slots=True)
class PowerLimit:
    """At most `power` watts from `begin` to `end`, in seconds."""

    begin: float
    end: float
    power: float


@dataclass(frozen=True, slots=True)
class Battery:
    """The energy available to the application, in joules, and the minimum that must be left over time."""

    capacity: float
    least: tuple[tuple[float, float], ...] = ()  # (time, energy), linear in between
    signal: str | None = None

    def least_at(self, time: float) -> float:
        if not self.least:
            return 0.0
        times, energies = zip(*self.least, strict=True)
        return float(np.interp(time, times, energies))


@dataclass(frozen=True, slots=True)
class TimedRequest:
    time: float
    scenario: str


@dataclass(frozen=True, slots=True)
class Environment:
    """The course of events, in seconds, watts and joules."""

    duration: float
    signals: tuple[Signal, ...] = ()
    limits: tuple[PowerLimit, ...] = ()  # in order, disjoint
    requests: tuple[TimedRequest, ...] = ()  # in order
    battery: Battery | None = None
    sample: float = 1.0
    seed: int = 0
    name: str = "the environment"

    @property
    def sampled_at(self) -> Sequence[float]:
        """When the firmware reads continuously changing signals; empty if there are none."""
        follows_charge = self.battery is not None and self.battery.signal is not None
        if not follows_charge and not any(signal.is_sampled for signal in self.signals):
            return ()
        return [float(time) for time in np.arange(floor(self.duration / self.sample) + 1) * self.sample]

    def readings(self) -> Mapping[float, Mapping[str, float]]:
        """The signals read at each time, with their values, in time order."""
        read: dict[float, dict[str, float]] = defaultdict(dict)
        samples = self.sampled_at
        for signal in self.signals:
            times = samples if signal.is_sampled else signal.times
            for time, value in zip(times, self._values(signal, times), strict=True):
                if signal.times[0] <= time < self.duration:
                    read[time][signal.name] = value
        return dict(sorted(read.items()))

    def _values(self, signal: Signal, times: Sequence[float]) -> Sequence[float]:
        if not signal.is_sampled:
            return signal.values
        if signal.is_linear:
            values = np.interp(times, signal.times, signal.values)
        else:
            last = np.searchsorted(signal.times, times, side="right") - 1
            values = np.asarray(signal.values)[np.maximum(last, 0)]
        # The seed of a signal follows from its name, so that adding one leaves the others unchanged.
        rng = np.random.default_rng([self.seed, crc32(signal.name.encode())])
        return [float(value) for value in values + rng.uniform(-signal.noise, signal.noise, len(times))]


def read_environment(path: Path) -> Environment:
    """Reads the file, with the signals of its CSV files; an error names the file, the key and what was expected."""
    file = read_toml(path, EnvironmentFile, "an environment")
    limits = tuple(PowerLimit(one.begin, one.end, one.power) for one in sorted(file.limits, key=lambda one: one.begin))
    return Environment(
        duration=file.duration,
        signals=tuple(_signal(entry, f"{path}: signal[{n}]", path.parent) for n, entry in enumerate(file.signals)),
        limits=limits,
        requests=tuple(TimedRequest(one.time, one.scenario) for one in sorted(file.requests, key=lambda one: one.time)),
        battery=None if file.battery is None else _battery(file.battery, limits, file.duration),
        sample=file.sample,
        seed=file.seed,
        name=str(path),
    )


def _battery(entry: BatteryEntry, limits: Sequence[PowerLimit], duration: float) -> Battery:
    """The battery. If the file gives no minimum charge, power limits that cover the whole time imply it."""
    least = tuple(zip(entry.times, entry.charge, strict=True))
    ends = [0.0, *(limit.end for limit in limits)]
    if not least and len(ends) > 1 and ends == [*(limit.begin for limit in limits), duration]:
        spent = accumulate(limit.power * (limit.end - limit.begin) for limit in limits)
        charges = [entry.capacity, *(max(0.0, entry.capacity - energy) for energy in spent)]
        least = tuple(zip(ends, charges, strict=True))
    return Battery(entry.capacity, least, entry.signal)


def _signal(entry: SignalEntry, where: str, folder: Path) -> Signal:
    times, values = entry.times, entry.values
    if entry.file is not None:
        times, values = _column(folder / entry.file, entry.name, where)
    return Signal(entry.name, times, values, entry.between is Interpolation.LINEAR, entry.noise)


def _column(path: Path, name: str, where: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The times and values of a signal in a CSV file; rows without a value are skipped."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            names = tuple(rows.fieldnames or ())
            for column in ("time", name):
                if column not in names:
                    heads = ", ".join(show(head) for head in names[:8]) or "none"
                    raise InputError(f'{where}.file: {path} has no column "{column}" (columns: {heads})')
            table = [_cells(row["time"], row[name], f"{path}, line {rows.line_num}") for row in rows if row[name]]
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{where}.file: {path} cannot be read: {reason}; expected CSV with a header") from error
    if not table:
        raise InputError(f'{where}.file: {path} has no values of "{name}"; expected one row or more')
    times, values = zip(*table, strict=True)
    for before, after in pairwise(times):
        if after <= before:
            raise InputError(f"{path}: the time {after:g} s follows {before:g} s; expected rising times")
    return times, values


def _cells(time: str | None, value: str, where: str) -> tuple[float, float]:
    try:
        read = float(value)
    except ValueError:
        read = float("nan")
    if not isfinite(read):
        raise InputError(f"{where}: {show(value)} is no value of a signal; expected a number")
    try:
        return parse_time(time or "", or_zero=True), read
    except InputError as error:
        raise InputError(f"{where}: time: {error}") from error


def _broken_rules(file: EnvironmentFile) -> Iterator[tuple[str, str]]:
    """Rules that involve several fields: (key, problem)."""
    taken = {} if file.battery is None or file.battery.signal is None else {file.battery.signal: "battery.signal"}
    for index, signal in enumerate(file.signals):
        key = f"signal[{index}]"
        if signal.name in taken:
            yield f"{key}.name", f'is "{signal.name}", as in {taken[signal.name]}; expected a unique name'
        taken[signal.name] = f"{key}.name"
        if (signal.file is None) == (not signal.times):
            yield key, "has both times and a file, or neither; expected times and values, or a file"
        yield from _broken_table(key, "values", signal.times, signal.values)
    if file.battery is not None:
        battery = file.battery
        yield from _broken_table("battery", "charge", battery.times, battery.charge)
        if battery.charge and max(battery.charge) > battery.capacity:
            yield "battery.charge", "is above the capacity; expected energies up to it"
    for index, limit in enumerate(file.limits):
        if limit.end <= limit.begin:
            yield f"limit[{index}].until", f"is {limit.end:g} s; expected a time after from, {limit.begin:g} s"
    for before, after in pairwise(sorted(file.limits, key=lambda one: one.begin)):
        if after.begin < before.end:
            key = f"limit[{file.limits.index(after)}].from"
            yield key, f"is {after.begin:g} s, before another limit ends; expected {before.end:g} s or later"
    for index, request in enumerate(file.requests):
        if request.time >= file.duration:
            key = f"request[{index}].time"
            yield key, f"is {request.time:g} s; expected a time before the end, {file.duration:g} s"
    least = file.duration * max(1, len(file.signals)) / MOST_SAMPLES
    if file.sample < least:
        yield "sample", f"is {file.sample:g} s, too short for {file.duration:g} s; expected at least {least:g} s"


def _broken_table(key: str, column: str, times: Sequence[float], values: Sequence[float]) -> Iterator[tuple[str, str]]:
    if len(times) != len(values):
        yield f"{key}.{column}", f"has {len(values)} entries; expected {len(times)}, one for each of the times"
    for before, after in pairwise(times):
        if after <= before:
            yield f"{key}.times", f"has {after:g} s after {before:g} s; expected rising times"
