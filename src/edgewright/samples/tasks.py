"""A task for an architecture search with made-up sensor data: movements of a wrist, by several people."""

from __future__ import annotations

import io
from collections.abc import Mapping
from importlib import resources

import numpy as np
import numpy.typing as npt

PEOPLE, WINDOWS, LENGTH, RATE_HZ = 10, 24, 48, 24  # windows are of each person and class
MOVES = ("still", "walk", "run", "turn", "wave")
STEPS_HZ = {"walk": 1.8, "run": 2.8, "wave": 2.2}
GRAVITY = 9.8  # m/s²


def moves() -> Mapping[str, str | bytes]:
    """A task of `edgewright search`: movements of a wrist in made-up accelerometer windows of ten people."""
    random = np.random.default_rng(39)
    x, y, who = [], [], []
    for person in range(PEOPLE):
        pace, strength, tilt = random.uniform(0.85, 1.15), random.uniform(0.6, 1.4), random.normal(0, 0.3, 2)
        for label, move in enumerate(MOVES):
            for _ in range(WINDOWS):
                x.append(_window(random, move, pace * random.uniform(0.9, 1.1), strength, tilt))
                y.append(label)
                who.append(person)
    stream = io.BytesIO()
    inputs, labels, people = np.asarray(x, np.float16), np.asarray(y, np.uint8), np.asarray(who, np.uint8)
    np.savez_compressed(stream, x=inputs, y=labels, who=people, classes=np.asarray(MOVES))
    task = (resources.files(__package__) / "app_files" / "moves.toml").read_text(encoding="utf-8")
    return {"moves.toml": task, "moves.npz": stream.getvalue()}


def _window(
    random: np.random.Generator, move: str, pace: float, strength: float, tilt: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Acceleration along three axes: gravity in the person's way to wear the sensor, the movement, noise."""
    time = np.arange(LENGTH) / RATE_HZ
    found = np.tile(GRAVITY * np.array([np.sin(tilt[0]), np.sin(tilt[1]), np.cos(tilt[0])]), (LENGTH, 1))
    angle = 2 * np.pi * (STEPS_HZ.get(move, 0) * pace * time + random.uniform())
    match move:
        case "walk":
            found += strength * np.stack([np.sin(angle), 0.5 * np.sin(angle / 2), 1.8 * np.abs(np.sin(angle))], 1)
        case "run":
            found += strength * np.stack([2 * np.sin(angle), np.sin(angle / 2), 3 * np.abs(np.sin(angle))], 1)
        case "wave":
            found += strength * np.stack([0.4 * np.cos(angle), 2.5 * np.sin(angle), 0.3 * np.sin(2 * angle)], 1)
        case "turn":
            share = 1 / (1 + np.exp(-6 * pace * (time - random.uniform(0.5, 1.5))))
            found += strength * np.stack([2.5 * share, -2.0 * share, -1.5 * share], 1)
    return found + random.normal(0, 0.9, found.shape)
