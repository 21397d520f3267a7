"""`edgewright adapt`: scenarios of one application that switch at run time."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from .. import text
from ..adaptive.description import LayerAttribute
from ..adaptive.outcome import AdaptOutcome, adapt_outcome
from ..adaptive.paper.findings import listed
from ..adaptive.paper.layers import LayerParameters
from ..adaptive.paper.supergraph import ControlParameter, SuperLayer
from ..adaptive.scenarios import load_adaptive
from .common import console, print_json, print_notes, shown, table, working
from .simulation_tables import simulate_environment

MOST_LAYERS = 60  # rows of the table of layers
FEW_LAYERS = 12  # up to which it shows the values of parameters


def adapt(
    application: Path,
    share: tuple[LayerAttribute, ...] | None,
    request_at: float,
    environment: Path | None,
    timeline: Path | None,
    as_json: bool,
) -> None:
    if timeline is not None and environment is None:
        raise click.UsageError("--timeline shows a simulated day: add --environment ENV.TOML.")
    if environment is not None:
        if share is not None:
            raise click.UsageError("--share is for the paper's model: leave --environment out.")
        simulate_environment(application, environment, timeline, as_json)
        return
    with working("reading the networks"):
        found = load_adaptive(application)
    with working("planning all scenarios"):
        outcome = adapt_outcome(found, share, request_at)
    if as_json:
        print_json(outcome.to_dict())
        return
    console.print(scenarios_table(outcome))
    console.print(supergraph_table(outcome))
    console.print(memory_table(outcome))
    console.print(transitions_table(outcome))
    if any(one.doubled for one in outcome.transitions):
        console.print(doubled_table(outcome))
    for finding in outcome.findings:
        console.print(f"finding: {shown(finding)}", soft_wrap=True)
    print_notes(outcome.notes)


def scenarios_table(outcome: AdaptOutcome) -> Table:
    heads = ("scenario", ">layers", ">MACs", ">weights", ">RAM", ">one frame", ">accuracy", ">power")
    made = table("scenarios", *heads)
    for one in outcome.application.scenarios:
        accuracy, power = one.entry.accuracy, one.entry.power
        made.add_row(
            shown(one.name),
            text.count(len(one.layers)),
            text.count(one.network.total_macs),
            text.size(one.network.weight_bytes),
            text.size(outcome.plans[one.name].peak_bytes),
            text.duration(one.frame_time),
            "" if accuracy is None else f"{accuracy:.1%}",
            "" if power is None else f"{power:g} W",
        )
    return made


def supergraph_table(outcome: AdaptOutcome) -> Table:
    """The layers of the supergraph, whose they are, and what the control node sets in them."""
    graph = outcome.supergraph
    names = [one.name for one in outcome.application.scenarios]
    share = ", ".join(one.value for one in LayerAttribute if one in graph.share)
    sizes = (
        f"{text.plural(len(graph.layers), 'layer')}, {text.plural(len(graph.edges), 'edge')}, "
        f"{text.plural(len(graph.parameters), 'parameter')}"
    )
    made = table(f"the paper's supergraph for A = {{{share}}}: {sizes}", "layer", *map(shown, names), "parameters")
    for layer in graph.layers[:MOST_LAYERS]:
        own = [one for one in graph.parameters if one.layer == layer.number]
        layers = (_captured(outcome, layer, name) for name in names)
        said = (
            "\n".join(map(_parameter, own))
            if len(graph.layers) <= FEW_LAYERS
            else ", ".join(f"{one.name} = {one.attribute.value}" for one in own)
        )
        made.add_row(f"l{layer.number}", *layers, said)
    if len(graph.layers) > MOST_LAYERS:
        made.add_row("…", *("" for _ in names), f"{len(graph.layers) - MOST_LAYERS} more layers; --json gives all")
    return made


def _captured(outcome: AdaptOutcome, layer: SuperLayer, scenario: str) -> str:
    return shown(", ".join(outcome.layer_name(scenario, at) for at in layer.captured.get(scenario, ())))


def _parameter(one: ControlParameter) -> str:
    """A parameter with its values; scenarios that have the same one stand together."""
    names: dict[object, list[str]] = {}
    for scenario, value in one.values.items():
        names.setdefault(value, []).append(scenario)
    values = (f"{_value(value)} in {', '.join(scenarios)}" for value, scenarios in names.items())
    return shown(f"{one.name} = {one.attribute.value}: {'; '.join(values)}")


def _value(value: object) -> str:
    match value:
        case LayerParameters():
            return f"{text.plural(len(value.names), 'constant')}, {text.size(value.size)}"
        case tuple():
            return "{" + ", ".join(map(str, value)) + "}"
        case _:
            return str(value)


def memory_table(outcome: AdaptOutcome) -> Table:
    made = table("memory", "what scenarios share", ">buffers", ">weights")
    for key, label in (
        ("none", "A = {}: layers that are equal, with all before and after them"),
        ("io", "A = {I, O}: layers with equal parameters"),
        ("io_par", "A = {I, O, par}: layers of one kind"),
        ("exact", "all bytes: the largest scenario's arena"),
    ):
        made.add_row(label, text.size(getattr(outcome.memory, key)), text.size(getattr(outcome.weights, key)))
    return made


def transitions_table(outcome: AdaptOutcome) -> Table:
    """Delays of all switches."""
    heads = ("switch", ">naive", ">paper's", ">safe", ">without barriers", "hazards of the paper's")
    made = table("switching delays, from the request to the first output", *heads)
    for one in outcome.transitions:
        edges = listed([*dict.fromkeys(hazard.edge for hazard in one.hazards)])
        lost = "the last step is lost" if one.loses_last_step else ""
        delays = (one.naive_delay, one.paper_delay, one.safe.delay, one.safe.delay_without_barrier)
        hazards = "; ".join(filter(None, (edges and f"race on {edges}", lost)))
        made.add_row(shown(f"{one.old} → {one.new}"), *map(text.duration, delays), hazards)
    return made


def doubled_table(outcome: AdaptOutcome) -> Table:
    """What second buffers for edges give."""
    heads = ("switch", "edges with two buffers", ">more bytes", ">safe", ">without barriers", ">layers used twice too")
    made = table("safe delays with more buffers", *heads)
    for one in outcome.transitions:
        for choice in one.doubled:
            delays = (choice.delay, choice.delay_without_barrier, choice.delay_without_layers)
            figures = (text.size(choice.extra_bytes), *map(text.duration, delays))
            made.add_row(shown(f"{one.old} → {one.new}"), listed(choice.edges), *figures)
    return made
