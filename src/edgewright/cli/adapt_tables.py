"""Tables of `edgewright adapt`: the paper's model, delays, layouts, measurements."""

from __future__ import annotations

from rich.table import Table

from .. import text
from ..adaptive.compiled import CompiledSwitching
from ..adaptive.delays import DelayOutcome, DelayRange
from ..adaptive.description import LayerAttribute
from ..adaptive.front_outcome import FrontOutcome
from ..adaptive.measured import MeasuredPair
from ..adaptive.outcome import AdaptOutcome
from ..adaptive.paper.findings import listed
from ..adaptive.paper.layers import LayerParameters
from ..adaptive.paper.supergraph import ControlParameter, SuperLayer
from .common import shown, table

MOST_LAYERS = 60  # rows of the table of layers
FEW_LAYERS = 12  # the table shows parameter values up to this many layers


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
    """The layers of the supergraph, the scenarios that use each, and the parameters that the control node sets."""
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
    """A parameter and its values; scenarios with the same value are listed together."""
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
    """The delays that double buffering saves."""
    heads = ("switch", "edges with two buffers", ">more bytes", ">safe", ">without barriers", ">layers used twice too")
    made = table("safe delays with more buffers", *heads)
    for one in outcome.transitions:
        for choice in one.doubled:
            delays = (choice.delay, choice.delay_without_barrier, choice.delay_without_layers)
            figures = (text.size(choice.extra_bytes), *map(text.duration, delays))
            made.add_row(shown(f"{one.old} → {one.new}"), listed(choice.edges), *figures)
    return made


def front_table(outcome: FrontOutcome) -> Table:
    """Layouts for limits on the delay, the largest arena first."""
    policy = outcome.switching.policy.value
    heads = (">arena", ">of the largest scenario", "proof", ">worst delay", "by switch")
    made = table(f'arena size against the worst switching delay, policy "{policy}"', *heads)
    for one in outcome.layouts:
        proof = "least for these plans and this limit" if one.is_least else f"at least {text.size(one.bound_bytes)}"
        pairs = "\n".join(shown(f"{old} → {new}: {text.duration(d)}") for (old, new), d in one.delays.items())
        share = f"{one.arena_bytes / max(1, outcome.largest):.2f}"
        made.add_row(text.size(one.arena_bytes), share, proof, text.duration(one.worst_delay), pairs)
    return made


def delays_table(outcome: DelayOutcome) -> Table:
    """Delays of our policies: worst, median and best over all moments of the request."""
    heads = ("policy", ">arena", "switch", ">worst", ">median", ">best")
    made = table("switching delays over all moments of the request", *heads)
    for one in outcome.policies:
        head = (one.policy.value, text.size(one.layout.arena_bytes))
        for (old, new), delay in one.delays.items():
            made.add_row(*head, shown(f"{old} → {new}"), *_delays(delay))
            head = ("", "")
    return made


def paper_delays_table(outcome: DelayOutcome) -> Table:
    """Delays of the paper's protocol; the protocol as printed is listed with its faults."""
    heads = ("switch", "protocol", ">worst", ">median", ">best", "hazards")
    made = table("the paper's protocol, layer by layer on two processors; analysed, never executed", *heads)
    for one in outcome.paper:
        races = f"race on {listed(one.hazards)}" if one.hazards else ""
        lost = "may lose the last step" if one.loses_last_step else ""
        head = shown(f"{one.old} → {one.new}")
        for name, delay, said in (
            ("naive", one.naive, "none"),
            ("printed", one.printed, "; ".join(filter(None, (races, lost))) or "none"),
            ("safe", one.safe, "none"),
        ):
            made.add_row(
                head, name, *_delays(delay), said, style="red" if name == "printed" and said != "none" else None
            )
            head = ""
    return made


def _delays(delay: DelayRange) -> tuple[str, str, str]:
    return text.duration(delay.worst), text.duration(delay.median), text.duration(delay.best)


def measured_pairs_table(pairs: tuple[MeasuredPair, ...], policy: str) -> Table:
    """Delays measured on this machine, beside those predicted from measured step times."""
    heads = ("switch", ">requests", ">predicted", ">measured", ">worst predicted", ">worst measured")
    made = table(f'switching delays on this machine, policy "{policy}": medians, and the worst', *heads)
    for pair in pairs:
        data = pair.to_dict()
        figures = ("predicted", "measured", "worst_predicted", "worst_measured")
        times = (text.duration(float(str(data[name]))) for name in figures)
        made.add_row(shown(f"{pair.old} → {pair.new}"), text.count(len(pair.measured)), *times)
    return made


def switching_library_table(compiled: CompiledSwitching) -> Table:
    """RAM and flash of the compiled library."""
    made = table("the compiled library", "", ">bytes", "")
    proof = "least for these plans and this limit" if compiled.layout.is_least else "the best that was found"
    made.add_row("arena", text.count(compiled.layout.arena_bytes), f"all scenarios; {proof}")
    made.add_row("state", text.count(compiled.library.state_bytes), "which scenario runs, and what was requested")
    made.add_row("weights", text.count(compiled.library.weight_bytes), "equal tensors once")
    board = compiled.trial.board if compiled.trial else None
    if board is not None:
        made.add_row("stack", text.count(board.run.stack_bytes), "measured on the virtual board")
    made.add_row("worst delay", text.duration(compiled.layout.worst_delay), f'policy "{compiled.layout.policy.value}"')
    return made
