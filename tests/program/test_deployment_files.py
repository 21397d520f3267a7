"""Deployments in folders: what is written is read again, weights are there once, damage is named in one sentence."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.errors import EdgewrightError, InputError, Unsupported
from edgewright.memory.deploy import PartRequest, deploy
from edgewright.network import Network, Region
from edgewright.program import plan_to_dict
from edgewright.program.deployment import BuiltPart, Deployment, InterruptionPoints, Relation, RelationKind, Worker
from edgewright.program.deployment_check import deployment_faults
from edgewright.program.deployment_file import load_deployment, save_deployment
from edgewright.program.deployment_run import deployment_errors
from edgewright.program.weights import weight_origins
from tests.helpers.damage import damaged_bytes, damaged_text
from tests.helpers.random_deployments import frames_of, random_deployment
from tests.helpers.random_networks import networks
from tests.program.test_deployments import diamond, pipeline


def assert_same(found: Deployment, wanted: Deployment) -> None:
    for name in ("workers", "fifos", "arenas", "predictions"):
        assert getattr(found, name) == getattr(wanted, name)
    for one, other in zip(found.parts, wanted.parts, strict=True):
        assert (one.name, one.inputs, one.outputs) == (other.name, other.inputs, other.outputs)
        assert (one.plan and plan_to_dict(one.plan)) == (other.plan and plan_to_dict(other.plan))
    pairs = [*zip(found.networks, wanted.networks, strict=True)]
    pairs += [(one.network, other.network) for one, other in zip(found.parts, wanted.parts, strict=True)]
    for mine, theirs in pairs:
        assert (mine.layers, mine.tensors, mine.inputs) == (theirs.layers, theirs.tensors, theirs.inputs)
        for name, value in theirs.constants.items():
            assert np.array_equal(mine.constants[name], value, equal_nan=value.dtype.kind == "f")


@settings(deadline=None, max_examples=12)
@given(networks(), st.integers(0, 1 << 30))
def test_what_is_saved_is_loaded(tmp_path_factory: pytest.TempPathFactory, network: Network, seed: int):
    folder = tmp_path_factory.mktemp("deployment")
    try:
        made = random_deployment(network, Random(seed))
    except Unsupported:
        return
    save_deployment(made, folder)
    found = load_deployment(folder)
    assert_same(found, made)
    assert list(deployment_faults(found)) == []
    assert list(deployment_errors(found, frames_of(network, 4, seed), seed)) == []


def test_weights_are_stored_once_and_parts_look_into_them(tmp_path: Path):
    network = diamond()
    whole = Region(((0, 1), (0, 8), (0, 8), (0, 4)))
    halves = [whole.with_axis(3, channels) for channels in ((0, 1), (1, 4))]
    requests = [
        *(PartRequest(f"a{i}", ("a",), {"a": half}) for i, half in enumerate(halves)),
        PartRequest("rest", ("left", "right", "y")),
    ]
    workers = [Worker(f"w{i}", "this", "cpu", (0,), (part.name,)) for i, part in enumerate(requests)]
    save_deployment(deploy(network, requests, workers), tmp_path)
    stored = sorted((tmp_path / "weights").iterdir())
    assert len(stored) == 2  # those of the two convolutions, whole
    found = load_deployment(tmp_path)
    origins = weight_origins(found.networks, found.parts[1].network)
    assert [(origin.constant, origin.region.bounds[0]) for origin in origins.values()] == [("a.w", (1, 4))]
    piece, of = found.parts[1].network.constants["a.w"], found.networks[0].constants["a.w"]
    assert np.shares_memory(piece, of)


DAMAGE: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda d: d.pop("workers"), "the deployment is damaged: deployment.workers: field required; make it again"),
    (lambda d: d["fifos"][0].update(slots=0), "the FIFO of .* has 0 slots; give it one or more"),
    (lambda d: d["fifos"][0].update(slots="two"), "fifos.*slots: input should be a valid integer"),
    (lambda d: d["workers"][0].update(speed=1), "workers.*speed: extra inputs are not permitted"),
    (lambda d: d["parts"][0]["plan"].update(peak_bytes=1), "the plan of 'head': .*it states 1"),
    (lambda d: d["parts"][0]["network"]["weights"].clear(), "network 'head': its weights are not its constants"),
    (lambda d: d["networks"][0]["weights"]["a.w"].update(digest="../x"), "'../x' is no digest of a weight"),
    (lambda d: d["networks"][0]["weights"]["a.w"].update(region=[[0, 9]]), "is not inside the weight"),
    (
        lambda d: d["networks"][0]["weights"]["a.w"].update(region=[[0, 1], [0, 3], [0, 3], [0, 4]]),
        r"network 'diamond': the weight of 'a.w' is float32\[1, 3, 3, 4\]",
    ),
    (lambda d: d["parts"][0]["plan"]["network"]["layers"][0]["op"].update(groups=2), "the plan of 'head': "),
    (
        lambda d: d["parts"][0]["plan"]["network"].update(arithmetic="tflite"),
        "the plan of part 'head' is one of another network: its arithmetics differ",
    ),
    (
        lambda d: d["networks"][0]["tensors"][0].update(quant={"scale": [0.5], "zero": [1], "axis": None}),
        "network 'diamond': tensor 'x' is not well formed",
    ),
    (lambda d: d["networks"][0]["layers"][-1]["inputs"].pop(), r"'y' \(Binary\): it has 1 inputs instead of 2"),
    (lambda d: d["networks"][0]["layers"].reverse(), "network 'diamond': layer .* reads .* before it is written"),
    (lambda d: d["workers"][0]["parts"].reverse(), "this deployment cannot run: parts wait for each other"),
    (lambda d: d["arenas"].append(d["arenas"][0]), "one key stands twice"),
    (lambda d: d["arenas"][0][1]["workers"].update(one=-64), "something begins before 'ram' of 'this'"),
]


@pytest.mark.parametrize(("change", "message"), DAMAGE)
def test_damage_is_named(tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str):
    save_deployment(pipeline(), tmp_path)
    file = tmp_path / "deployment.json"
    data = json.loads(file.read_text())
    change(data["deployment"])
    file.write_text(json.dumps(data))
    with pytest.raises(InputError, match=message) as caught:
        load_deployment(tmp_path)
    assert "\n" not in str(caught.value)


def test_another_format_is_named(tmp_path: Path):
    file = tmp_path / "deployment.json"
    for text, message in (
        ('{"format": 2}', "the deployment has format 2, this edgewright reads 3; make the deployment again"),
        ('{"deployment": {}}', "this is not an edgewright deployment: there is no 'format' in it"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            load_deployment(tmp_path)


def test_relations_and_what_was_built_are_kept(tmp_path: Path):
    points = InterruptionPoints(frozenset({0}), frozenset({(0, 0), (1, 0)}))
    relations = (
        Relation(RelationKind.PREEMPTS, ("left", "tail"), points),
        Relation(RelationKind.AFTER, ("head", "tail")),
    )
    built = BuiltPart(
        "native", "lib/x.so", "00", 12, ("a",), "x_run_in", {"ram": 1024, "ccm": 64}, 2, "x_stop", "z80", ("a",)
    )
    made = pipeline()
    head, *others = made.parts
    save_deployment(replace(made, relations=relations, parts=(replace(head, built=built), *others)), tmp_path)
    found = load_deployment(tmp_path)
    assert found.relations == relations
    assert [part.built for part in found.parts] == [built, None, None]


def test_damaged_weights_are_named(tmp_path: Path):
    save_deployment(pipeline(), tmp_path)
    one, other = sorted((tmp_path / "weights").iterdir())
    shutil.copy(one, other)
    with pytest.raises(InputError, match="are not those that its name says"):
        load_deployment(tmp_path)
    other.write_bytes(b"nothing")
    with pytest.raises(InputError, match="is no array of numpy"):
        load_deployment(tmp_path)
    other.unlink()
    with pytest.raises(InputError, match="cannot read the weight"):
        load_deployment(tmp_path)
    with pytest.raises(InputError, match=r"there is no file .*deployment\.json"):
        load_deployment(tmp_path / "nowhere")


def test_randomly_damaged_weights_are_refused_or_whole(tmp_path: Path):
    made = pipeline()
    save_deployment(made, tmp_path)
    file = min((tmp_path / "weights").iterdir())
    sound, archive = file.read_bytes(), io.BytesIO()
    np.savez(archive, np.zeros(9))
    file.write_bytes(archive.getvalue())
    with pytest.raises(InputError, match="is no array of numpy"):
        load_deployment(tmp_path)
    for seed in range(150):
        damage = damaged_bytes if seed % 2 else damaged_text
        file.write_bytes(damage(Random(seed), sound, archive.getvalue()))
        with contextlib.suppress(InputError):
            (found,) = load_deployment(tmp_path).networks
            for name, value in found.constants.items():
                np.testing.assert_array_equal(value, made.networks[0].constants[name])


def _mutated(random: Random, value: Any) -> Any:
    """The data with something in it replaced, doubled or dropped."""
    inner = [*value.items()] if isinstance(value, dict) else [*enumerate(value)] if isinstance(value, list) else []
    if inner and random.random() < 0.93:
        key, below = random.choice(inner)
        if random.random() < 0.08:
            other = random.choice(inner)[0]
            value[key], value[other] = value[other], value[key]
        elif random.random() < 0.04:
            value.pop(key)
        else:
            value[key] = _mutated(random, below)
        return value
    if isinstance(value, bool) or value is None:
        return random.choice((True, None, 0))
    if isinstance(value, int):
        return random.choice((value + 1, value - 1, 0, -1, value * 2, 1 << 40))
    return random.choice((None, "", "x", [], {}, 1.5, value))


@pytest.mark.parametrize("seed", range(80))
def test_mutated_files_are_refused_or_right(tmp_path: Path, seed: int):
    """Whatever changes: it is refused by one of our errors, or what is loaded computes what its networks say."""
    random, network = Random(seed), diamond()
    save_deployment(pipeline(), tmp_path)
    file = tmp_path / "deployment.json"
    text = file.read_text()
    for trial in range(4):
        data = json.loads(text)
        for _ in range(random.randint(1, 2)):
            data = _mutated(random, data)
        file.write_text(json.dumps(data))
        try:
            found = load_deployment(tmp_path)
        except EdgewrightError:
            continue
        if found.networks[0].layers == network.layers and found.networks[0].tensors == network.tensors:
            assert list(deployment_errors(found, frames_of(found.networks[0], 3), trial)) == []
