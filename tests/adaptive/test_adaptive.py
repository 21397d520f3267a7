"""Applications with scenarios as read from files: networks, times, what does not fit together; the verb `adapt`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.adaptive.description import LayerAttribute
from edgewright.adaptive.outcome import adapt_outcome
from edgewright.adaptive.paper.layers import scenario_graph
from edgewright.adaptive.paper.supergraph import NO_SHARE, derive_supergraph
from edgewright.adaptive.scenarios import UNKNOWN_CLOCK, executed_layers, load_adaptive
from edgewright.cli import main
from edgewright.errors import EdgewrightError, InputError
from edgewright.platform import load_board
from edgewright.platform.chip_time import board_instruction_time
from edgewright.samples.builder import ModelBuilder
from edgewright.samples.quantise import quantise

BOARD = 'board = "nucleo-f446re"\n'
SECONDS = board_instruction_time(load_board("nucleo-f446re"), is_real=True) or 0.0  # of an instruction


def classifier(name: str, widths: tuple[int, ...], size: int = 8, classes: int = 3) -> onnx.ModelProto:
    """A convolution for each width, and class scores."""
    net = ModelBuilder(name)
    x = net.input(1, 2, size, size)
    for channels in widths:
        x = net.relu(net.conv(x, channels, 3))
    return net.model(net.classifier(x, classes))


def detector(name: str) -> onnx.ModelProto:
    net = ModelBuilder(name)
    return net.model(net.conv(net.input(1, 2, 8, 8), 3, 3))


def written(folder: Path, head: str = "", tail: str = "", **models: onnx.ModelProto) -> Path:
    """An application whose scenarios are these models."""
    text = head
    for name, model in models.items():
        onnx.save(model, folder / f"{name}.onnx")
        text += f'[[network]]\nname = "{name}"\nfile = "{name}.onnx"\n[[scenario]]\nname = "{name}"\n'
    (folder / "app.toml").write_text(text + tail)
    return folder / "app.toml"


def two(folder: Path, head: str = "", tail: str = "") -> Path:
    return written(folder, head, tail, eco=classifier("eco", (4,)), full=classifier("full", (4, 8)))


def asked(*arguments: object) -> dict[str, object]:
    done = CliRunner().invoke(main, ["adapt", *map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_layers_are_inputs_what_executes_and_outputs(tmp_path: Path):
    network = load_adaptive(two(tmp_path)).scenario("full").network
    names = executed_layers(network)
    assert len(names) == 2 + len([layer for layer in network.layers if type(layer.op).__name__ != "Reshape"])
    assert names[0].startswith(network.inputs[0]) and names[-1].startswith(network.outputs[0])


def test_times_are_estimated_at_the_clock_of_the_board(tmp_path: Path):
    target = 'target = "cortex-m4"\n'
    slow, fast = (load_adaptive(two(tmp_path, head)) for head in (target, BOARD))
    assert "no board says how fast the processor is" in slow.notes[0]
    assert not fast.notes
    for one, other in zip(slow.scenarios, fast.scenarios, strict=True):
        assert one.is_estimated and one.layers == tuple(one.times)
        assert one.frame_time * UNKNOWN_CLOCK == pytest.approx(other.frame_time / SECONDS)
        assert one.times[one.layers[0]] == one.times[one.layers[-1]] == 0
        assert all(one.times[name] > 0 for name in one.layers[1:-1])
    assert fast.scenario("full").frame_time > fast.scenario("eco").frame_time


def test_measured_instructions_scale_the_estimate(tmp_path: Path):
    path = two(tmp_path, BOARD)
    text = path.read_text().replace('file = "eco.onnx"\n', 'file = "eco.onnx"\ninstructions = 180_000_000\n')
    path.write_text(text)
    assert load_adaptive(path).scenario("eco").frame_time == pytest.approx(180_000_000 * SECONDS)


def test_given_times_may_leave_inputs_and_outputs_out(tmp_path: Path):
    path = two(tmp_path, tail="layer_times = [3, 4, 5, 6]\n")
    full = load_adaptive(path).scenario("full")
    assert [*full.times.values()] == [0, 3, 4, 5, 6, 0] and not full.is_estimated
    path.write_text(path.read_text().replace("[3, 4, 5, 6]", "[1, 3, 4, 5, 6, 2]"))
    assert [*load_adaptive(path).scenario("full").times.values()] == [1, 3, 4, 5, 6, 2]


@pytest.mark.parametrize(
    ("head", "tail", "said"),
    [
        ("", "layer_times = [3, 4, 5]\n", r"scenario\[1\].layer_times has 3 times, and 'full' has 6 layers \(input"),
        (
            "",
            'labels = ["cat", "dog"]\n',
            r"scenario\[1\].labels has 2 labels, and 'full' gives 3 scores; expected one",
        ),
        ('target = "z80"\n', "", 'target is "z80"; expected one of'),
        (BOARD + '[adapt]\ndelay = "10 us"\n', "", "adapt.delay is 10 us, and a frame of 'eco' alone takes"),
        ('[adapt]\ndelay = "10 s"\n', "", "nobody knows how fast 'eco' is; expected a board"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path: Path, head: str, tail: str, said: str):
    with pytest.raises(InputError, match=said):
        load_adaptive(two(tmp_path, head, tail))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            classifier("full", (4, 8), size=10),
            r"scenario\[1\].network has the inputs float32\[1x10x10x2\], and scenario 'eco'",
        ),
        (classifier("full", (4, 8), classes=5), r"scenario\[1\].network has the outputs float32\[1x5\]"),
    ],
)
def test_scenarios_with_other_inputs_or_labels_are_refused(tmp_path: Path, other: onnx.ModelProto, said: str):
    with pytest.raises(InputError, match=said):
        load_adaptive(written(tmp_path, eco=classifier("eco", (4,)), full=other))


def test_a_cascade_needs_class_scores(tmp_path: Path):
    rule = '[[rule]]\nscenario = "eco"\nmargin_below = 0.2\nrequest = "full"\n'
    assert len(load_adaptive(two(tmp_path, tail=rule)).file.rules) == 1
    with pytest.raises(InputError, match=r"rule\[0\].scenario is \"eco\", whose output is float32\[1x8x8x3\]"):
        load_adaptive(written(tmp_path, tail=rule, eco=detector("eco"), full=detector("full")))


def test_a_cascade_needs_frames_that_both_networks_read_alike(tmp_path: Path):
    cascade = '[[rule]]\nscenario = "eco"\nmargin_below = 0.2\nrequest = "full"\n'
    frame = np.random.default_rng(0).standard_normal((1, 2, 8, 8), np.float32)

    def application(factor: float, rule: str = cascade) -> Path:
        eco, full = (
            quantise(classifier(name, widths), feeds=[{"input": frame * by}])
            for name, widths, by in (("eco", (4,), 1.0), ("full", (4, 8), factor))
        )
        path = written(tmp_path, tail=rule, eco=eco, full=full)
        keys = "quantised_input = true\nquantised_output = true\n"
        path.write_text(path.read_text().replace("[[scenario]]", f"{keys}[[scenario]]"))
        return path

    assert load_adaptive(application(1.0)).scenario("eco").network.tensors["input"].quant is not None
    assert "stored with different scales" in load_adaptive(application(1.5, rule="")).notes[-1]
    with pytest.raises(InputError, match=r"which stores its input 'input' with scale 0\.0"):
        load_adaptive(application(1.5))


def test_a_missing_model_is_named(tmp_path: Path):
    path = two(tmp_path)
    (tmp_path / "full.onnx").unlink()
    with pytest.raises(EdgewrightError, match=r"full\.onnx"):
        load_adaptive(path)


def test_two_scenarios_of_one_network_share_all_of_it(tmp_path: Path):
    path = two(tmp_path, tail='[[scenario]]\nname = "quick"\nnetwork = "eco"\n')
    application = load_adaptive(path)
    graphs = [scenario_graph(one.name, one.network) for one in application.scenarios if one.name != "full"]
    graph = derive_supergraph(graphs, NO_SHARE)
    assert all(len(layer.captured) == 2 for layer in graph.layers)
    assert (graph.parameters, graph.size) == ((), derive_supergraph(graphs[:1], NO_SHARE).size)
    outcome = adapt_outcome(application)
    assert outcome.plans["quick"] is outcome.plans["eco"]


def test_branches_have_an_edge_for_each_reader(tmp_path: Path):
    """A residual block: the sum reads two edges, and what is added leaves on two."""

    def residual(name: str) -> onnx.ModelProto:
        net = ModelBuilder(name)
        x = net.relu(net.conv(net.input(1, 2, 8, 8), 4, 3))
        return net.model(net.classifier(net.add(net.conv(x, 4, 3), x), 3))

    application = load_adaptive(written(tmp_path, eco=residual("eco"), full=residual("full")))
    graph = scenario_graph("eco", application.scenario("eco").network)
    made = [layer.name for layer in graph.layers]
    wires = [(made[edge.source], made[edge.target]) for edge in graph.edges]
    add = next(name for name in made if name.startswith("add"))
    assert sum(target == add for _, target in wires) == 2
    assert len(wires) == len(made)  # one more than a chain has
    shared = adapt_outcome(application)
    assert shared.memory.io_par < shared.memory.none == 2 * shared.memory.io_par


def test_the_bytes_of_weights_count_equal_ones_once(tmp_path: Path):
    application = load_adaptive(written(tmp_path, eco=classifier("same", (4,)), full=classifier("same", (4, 8))))
    one, other = (scenario.network for scenario in application.scenarios)
    alike = [
        one.constants[name].nbytes
        for name in one.constants
        if any(np.array_equal(one.constants[name], value) for value in other.constants.values())
    ]
    outcome = adapt_outcome(application)
    assert alike and outcome.weights.none == one.weight_bytes + other.weight_bytes
    assert outcome.weights.exact == outcome.weights.none - sum(alike)


# The verb.


def test_the_verb_says_what_there_is(tmp_path: Path):
    samples.write_application("paper_scenarios", tmp_path)
    said = asked(tmp_path / "app.toml")
    assert [len(said[key]) for key in ("layers", "edges", "parameters")] == [6, 6, 3]  # type: ignore[arg-type]
    assert said["memory"] == {"none": 38932, "io": 35850, "io_par": 31754, "exact": 8464}
    there, back = said["transitions"]  # type: ignore[misc]
    assert (there["naive_delay"], there["paper_delay"], there["safe_delay"]) == (17.5, 12.5, 14.5)
    assert (back["X"], back["X_safe"], back["loses_last_step"]) == ([1, 2, 4, 5, 6], [2, 3, 5, 6, 7], True)
    assert there["hazards"][0]["edge"] == "e12"
    assert [one["edges"] for one in back["doubled"]] == [["e45", "e56"], ["e12", "e45", "e56"]]


def test_share_and_request_override_the_file(tmp_path: Path):
    samples.write_application("paper_scenarios", tmp_path)
    said = asked(tmp_path / "app.toml", "--share", "I,O", "--request-at", "4.5")
    assert said["share"] == ["I", "O"] and len(said["layers"]) == 7  # type: ignore[arg-type]
    assert [one["naive_delay"] for one in said["transitions"]] == [11.5, 8.5]  # type: ignore[attr-defined]
    assert said["memory"] == asked(tmp_path / "app.toml")["memory"]
    assert asked(tmp_path / "app.toml", "--share", "")["parameters"] == []


def test_tables_show_the_same(tmp_path: Path):
    samples.write_application("paper_scenarios", tmp_path)
    done = CliRunner().invoke(main, ["adapt", str(tmp_path / "app.toml")])
    assert done.exit_code == 0
    for text in (
        "6 layers, 6 edges, 3 parameters",
        "31,754 B",
        "17.5 s",
        "race on e12, e45, e56",
        "finding: Algorithm 7",
    ):
        assert text in done.output


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("--share", "I,size"), 2, '"size" is no attribute of a layer'),
        (("--request-at", "7"), 1, "no request comes in step 7 of 'cnn1'"),
        (("--request-at", "nan"), 1, "no request comes in step nan"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(tmp_path: Path, arguments, status, said):
    samples.write_application("paper_scenarios", tmp_path)
    done = CliRunner().invoke(main, ["adapt", str(tmp_path / "app.toml"), *arguments])
    assert (done.exit_code, said in done.output) == (status, True)


def test_help_names_every_attribute():
    said = " ".join(CliRunner().invoke(main, ["adapt", "--help"]).output.split())
    assert ", ".join(one.value for one in LayerAttribute) in said
