"""A front of six design points with figures that are easy to rank by hand."""

from __future__ import annotations

from edgewright.search.front import DesignFront, DesignPoint, Measure

#      accuracy, frames/s, bytes, joules
SIX = {
    "a": (0.95, 10.0, 9000, 0.9),  # ranks 1 6 6 6
    "b": (0.93, 20.0, 8000, 0.7),  # ranks 2 5 5 5
    "c": (0.90, 50.0, 4000, 0.3),  # ranks 3 3 4 3
    "d": (0.90, 40.0, 3000, 0.4),  # ranks 3 4 2 4
    "e": (0.85, 90.0, 3000, 0.1),  # ranks 5 2 2 1
    "f": (0.80, 95.0, 2000, 0.2),  # ranks 6 1 1 2
}


def design_point(name: str, accuracy: float, throughput: float, ram: int, energy: float | None, **more) -> DesignPoint:
    given = {
        "name": name,
        "accuracy": accuracy,
        "macro_f1": accuracy,
        "ram_bytes": ram,
        "flash_bytes": 20_000,
        "instructions": round(64e6 / throughput),
        "macs": round(1e6 / throughput),
        "latency_s": 1 / throughput,
        "throughput": throughput,
        "energy_j": energy,
        "model": f"models/{name}.onnx",
        "manner": "streamed",
        "command": f"edgewright compile models/{name}.onnx --board nucleo-l4r5zi",
        **more,
    }
    return DesignPoint(**given)


def front_of(*points: DesignPoint, metric: str = "accuracy") -> DesignFront:
    measures = (Measure.ACCURACY, Measure.RAM, Measure.THROUGHPUT, Measure.ENERGY)
    return DesignFront(
        task="six", digest="0", seed=1, board="nucleo-l4r5zi", metric=metric, measures=measures, points=points
    )


def six_points() -> DesignFront:
    return front_of(*(design_point(name, *figures) for name, figures in SIX.items()))
