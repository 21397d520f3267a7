"""An application as trained, with fp16 weights and in int8: RAM, flash, throughput, output differences (M 6.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from .description import Precision, read_application
from .draft import assemble_application
from .host_run import run_application
from .outcome import flash_bytes
from .quantisation import PrecisionLoss, calibration_inputs, in_precision, output_difference
from .search import JointSearch


@dataclass(frozen=True)
class PrecisionRow:
    """The figures of all networks in one precision."""

    precision: Precision
    ram_bytes: int
    flash_bytes: int
    frames_per_s: Mapping[str, float]  # of each network, measured on this machine
    differences: Mapping[str, PrecisionLoss]  # from the network as trained, over the calibration data

    def to_dict(self) -> dict[str, object]:
        return {
            "precision": self.precision.value,
            "ram_bytes": self.ram_bytes,
            "flash_bytes": self.flash_bytes,
            "frames_per_s": dict(self.frames_per_s),
            "differences": {name: asdict(one) for name, one in self.differences.items()},
        }


def compare_precisions(path: Path, frames: int) -> Iterator[PrecisionRow]:
    """A row for each precision; an error if a network has no calibration data."""
    file, folder, where = read_application(path), path.parent, str(path)
    trained = assemble_application(in_precision(file, Precision.NONE), folder, where)
    samples = {
        entry.name: calibration_inputs(entry, trained.networks[entry.name], folder, f"{where}: network[{n}]")
        for n, entry in enumerate(file.networks)
    }
    for precision in Precision:
        application = assemble_application(in_precision(file, precision), folder, where)
        joint = JointSearch(application).least
        rates = {one.name: one.statistics.frames_per_s for one in run_application(application, joint.layout, frames)}
        yield PrecisionRow(
            precision,
            joint.peak_bytes,
            flash_bytes(application),
            rates,
            {
                name: output_difference(trained.networks[name], network, samples[name])
                for name, network in application.networks.items()
            },
        )
