"""`edgewright quantise`: converts a trained model to int8 and reports the change in accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .. import text
from ..files import check_file, write_atomic
from ..flow.quantisation import QuantisedModel, quantise_file
from ..network import Shape
from .common import asking_sizes, console, facts, print_json, print_notes, print_written, shown, working

MOST_NAMES = 8


def quantise(
    model: Path, data: Path, output: Path | None, samples: int, shapes: Mapping[str, Shape], as_json: bool
) -> None:
    target = output or Path(f"{model.stem}-int8.onnx")
    check_file(target)
    with working(f"quantising {model}"), asking_sizes():
        quantised = quantise_file(model, data, samples, shapes or None)
    write_atomic(target, quantised.model.SerializeToString())
    if as_json:
        print_json({**quantised.to_dict(), "output": str(target)})
        return
    _print(quantised)
    print_written([target])


def _print(quantised: QuantisedModel) -> None:
    rows = facts()
    loss = quantised.loss
    if quantised.accuracy:
        before, after = quantised.accuracy
        rows.add_row("accuracy", f"{after:.2%}", f"{before:.2%} before, {100 * (after - before):+.2f} points")
    rows.add_row("same class", f"{loss.same_class:.2%}", "of the samples have their largest output where they had it")
    rows.add_row(
        "difference", f"{loss.largest:.2%}", f"at most, as a share of the largest output; {loss.mean:.2%} on average"
    )
    before_bytes, after_bytes = quantised.trained.weight_bytes, quantised.network.weight_bytes
    rows.add_row("weights", text.size(after_bytes), f"{text.size(before_bytes)} before")
    console.print(rows)
    evaluated = text.plural(quantised.evaluated, "sample")
    notes = [f"ranges are from {text.plural(quantised.calibration, 'sample')}, figures from {evaluated}"]
    if quantised.is_overlapping:
        notes = [f"ranges and figures are from the same {evaluated}; give more for figures that say something"]
    if names := quantised.real_layers:
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        notes.append(f"still compute real numbers: {', '.join(map(shown, names[:MOST_NAMES]))}{more}")
    print_notes(notes)
