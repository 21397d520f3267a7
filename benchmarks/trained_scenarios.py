"""Trained networks as scenarios of one int8 application: its results here, its instructions on a Cortex-M4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from edgewright.adaptive.deploying import SwitchingApplication
from edgewright.adaptive.runtime import Adaptive
from edgewright.adaptive.scenarios import AdaptiveApplication, load_adaptive
from edgewright.emit.deployment import DeploymentLibrary
from edgewright.emit.deployment.trial import run_on_board
from edgewright.emit.firmware.glue import HarnessGlue
from edgewright.kernels.printing.source import CWriter
from labelled_data import LabelledData

Array = NDArray[Any]
TARGET = "cortex-m4"
CALIBRATION = 64  # samples of the training part
ENTRY = """[[network]]
name = "{name}"
file = "{name}.onnx"
quantise = "int8"
calibration = "samples.npz"
quantised_input = true
quantised_output = true
[[scenario]]
name = "{name}"
"""


def application_of(
    models: Mapping[str, onnx.ModelProto], data: LabelledData, folder: Path, rule: str = ""
) -> AdaptiveApplication:
    """The application whose scenarios are these models, in int8 with the ranges of some training samples."""
    text = f'target = "{TARGET}"\n'
    for name, model in models.items():
        onnx.save(model, folder / f"{name}.onnx")
        text += ENTRY.format(name=name)
    np.savez(folder / "samples.npz", **{model.graph.input[0].name: data.train.x[:CALIBRATION]})
    (folder / "app.toml").write_text(text + rule)
    return load_adaptive(folder / "app.toml")


def frames(application: AdaptiveApplication, x: Array) -> list[Array]:
    """Samples as the scenarios take them: channels last, in the numbers that are stored."""
    network = application.scenarios[0].network
    tensor = network.tensors[network.inputs[0]]
    assert tensor.quant is not None
    stored = np.rint(np.moveaxis(x, 1, -1) / np.float32(tensor.quant.scale[0])) + tensor.quant.zero[0]
    bounds = np.iinfo(tensor.dtype.numpy)
    values = np.clip(stored, bounds.min, bounds.max).astype(tensor.dtype.numpy)
    return [np.ascontiguousarray(value.reshape(tensor.shape)) for value in values]


@dataclass(frozen=True)
class Results:
    """What the compiled scenarios give for all frames."""

    scores: Array  # (N, classes), as stored
    scenarios: tuple[str, ...]  # that computed each frame


def results_here(running: Adaptive, given: Sequence[Array], scenario: str | None = None) -> Results:
    """All frames on this machine, by rules alone or with this scenario requested."""
    if scenario is not None:
        running.request(scenario)
    results = list(running(given))
    scores = np.stack([next(iter(each.outputs.values())).ravel() for each in results])
    return Results(scores, tuple(each.scenario for each in results))


@dataclass(frozen=True)
class BoardFirmware:
    """The library of an application, to be run on the virtual board."""

    library: DeploymentLibrary

    @classmethod
    def of(cls, application: AdaptiveApplication) -> BoardFirmware:
        switching = SwitchingApplication(application, application.file.adapt.policy)
        return cls(switching.library(switching.layout))

    def run(self, given: Sequence[Array], scenario: str | None = None) -> tuple[float, Results]:
        """The mean instructions of a frame, and the results."""
        names = [part.name for part in self.library.code.parts]
        request = -1 if scenario is None else names.index(scenario)
        network = self.library.code.parts[0].network
        scores = network.tensors[network.outputs[0]].size
        head = np.array([request, len(given)], np.int32).tobytes()
        data = head + b"".join(value.tobytes() for value in given)
        run = run_on_board(self.library, self._harness(len(given), given[0].nbytes, scores), data)
        rows = np.frombuffer(run.outputs, np.int8).reshape(len(given), scores + 1)
        return run.instructions / len(given), Results(rows[:, 1:], tuple(names[row[0]] for row in rows))

    def _harness(self, count: int, size: int, scores: int) -> HarnessGlue:
        """A harness that gives each frame to the application and notes who computed it."""
        c, name = CWriter(), self.library.name
        c.lines += ['#include "board.h"', f'#include "{name}.h"', ""]
        c.line("BOARD_MEMORY board_stamp board_probes[1];")
        c.line("const uint32_t board_probe_count = 0;")
        c.line(f"BOARD_MEMORY static int8_t x[{count}][{size}], y[{count}][{scores + 1}];")
        c.line("BOARD_MEMORY static int32_t script[2];")
        with c.block("int32_t board_inputs(void)"):
            c.line("return board_read(script, sizeof script) || board_read(x, sizeof x);")
        with c.block("void board_run(void)"):
            c.line("board_stack_top = board_stack();")
            with c.block("if (script[0] >= 0)"):
                c.line(f"{name}_request(script[0]);")
            with c.block("for (int32_t n = 0; n < script[1]; n++)"):
                c.line(f"y[n][0] = (int8_t){name}_step(x[n], y[n] + 1);")
        with c.block("void board_outputs(void)"):
            c.line("board_write(y, sizeof y);")
        return HarnessGlue(c.text(), count * (size + scores + 1) + 64)
