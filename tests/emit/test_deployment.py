"""C from deployments that no application file describes: made by hand, by cutting networks into parts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from edgewright import read_model
from edgewright.emit.deployment import DeploymentLibrary, LibraryNames, emit_deployment
from edgewright.emit.deployment.packaging import deployment_package
from edgewright.emit.deployment.trial import LibraryTrial, TrialScript, verify_library
from edgewright.errors import InputError
from edgewright.kernels.select import close_deployment
from edgewright.memory.deploy import PartRequest, deploy
from edgewright.network import Network
from edgewright.platform.target import TARGETS
from edgewright.program.deployment import Deployment, Fifo, Reader, Relation, RelationKind, Worker
from edgewright.samples.builder import ModelBuilder
from tests.helpers.random_deployments import random_requests

HOST = TARGETS["host"]


def chain(folder: Path, layers: int = 3) -> Network:
    """Convolutions one after the other."""
    net = ModelBuilder("chain")
    x = net.input(1, 3, 8, 8)
    for n in range(layers):
        x = net.relu(net.conv(x, 4, 3, name=f"l{n}"))
    (folder / "chain.onnx").write_bytes(net.model(x).SerializeToString())
    return read_model(folder / "chain.onnx")


def in_parts(network: Network, requests: list[PartRequest], slots: int = 2) -> Deployment:
    """The parts on a worker each, in an arena of their own and with slots between them."""
    workers = [Worker(f"w{n}", "board", "cpu", (), (request.name,)) for n, request in enumerate(requests)]
    return deploy(network, requests, workers, slots=slots)


def pipeline(network: Network, slots: int = 2) -> Deployment:
    names = [layer.name for layer in network.layers]
    cuts = [0, len(names) // 3, 2 * len(names) // 3, len(names)]
    pieces = pairwise(cuts)
    return in_parts(network, [PartRequest(f"p{n}", tuple(names[a:b])) for n, (a, b) in enumerate(pieces)], slots)


def emitted(deployment: Deployment) -> DeploymentLibrary:
    prefixes = {part.name: f"part_{n}" for n, part in enumerate(deployment.parts)}
    return emit_deployment(close_deployment(deployment, HOST), HOST, LibraryNames("demo", prefixes))


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_parts_on_workers_run_as_one_library(slots: int, tmp_path: Path) -> None:
    library = emitted(pipeline(chain(tmp_path, 6), slots))
    verified = verify_library(library, TrialScript(30, seed=slots))
    assert verified.here.runs > 50 and verified.here.refused
    source = str(library.files["demo.c"])
    places = next(iter(library.deployment.arenas.values()))
    bases = [places.workers[worker.name] for worker in library.deployment.workers]
    assert all(f"(arena + {base}, " in source for base in bases if base) and any(bases)
    assert f"% {slots}u" in source or slots == 1
    assert library.arenas == {"ram": places.bytes + library.state_bytes}


def test_a_frame_too_many_is_found_out(tmp_path: Path) -> None:
    """Of a library that lets a producer overwrite a slot which is not read."""
    library = emitted(pipeline(chain(tmp_path), 1))
    source = str(library.files["demo.c"])
    careless = source.replace(">= 1u)", ">= 2u)")
    assert careless != source
    trial = LibraryTrial(replace(library, files={**library.files, "demo.c": careless}))
    assert trial.run(TrialScript(60)).wrong


@pytest.mark.parametrize("seed", range(2))
def test_regions_and_partial_sums(seed: int, tmp_path: Path) -> None:
    """A frame may be read by several parts, and a part may read several frames."""
    network = chain(tmp_path, 4)
    library = emitted(in_parts(network, random_requests(network, Random(seed))))
    result = LibraryTrial(library).run(TrialScript(20, seed=seed))
    assert result.runs and not result.wrong


def test_slots_are_given_back_early_only_where_readers_say_so(tmp_path: Path) -> None:
    late = pipeline(chain(tmp_path, 6), 1)  # two stages in each part

    def released(stage: int) -> Deployment:
        def at(fifo: Fifo) -> Fifo:
            readers = (replace(x, stage=stage if x.part == "p1" else None) for x in fifo.readers)
            return replace(fifo, readers=tuple(readers))

        return replace(late, fifos=tuple(map(at, late.fifos)))

    assert "last_reads[] = {-2, -2, -2};" in str(emitted(late).files["demo.c"])
    assert "last_reads[] = {-2, -2, -2};" in str(emitted(released(1)).files["demo.c"])  # outputs are copied after it
    library = emitted(released(0))
    assert "last_reads[] = {-2, 0, -2};" in str(library.files["demo.c"])
    result = LibraryTrial(library).run(TrialScript(60))
    assert result.runs and not result.wrong


def test_exclusive_parts_take_no_lock_and_are_packaged(tmp_path: Path) -> None:
    parallel = pipeline(chain(tmp_path))
    names = tuple(part.name for part in parallel.parts)
    pairs = [(a, b) for a in names for b in names if a < b]
    exclusive = replace(parallel, relations=tuple(Relation(RelationKind.EXCLUSIVE, pair) for pair in pairs))
    libraries = emitted(parallel), emitted(exclusive)
    assert ["_IS_SHARED 1" in str(library.files["demo.c"]) for library in libraries] == [True, False]
    readme = str(deployment_package(libraries[1], "0", "demo")["README.md"])
    at = [readme.index(f"demo_run_part_{n}(") for n in range(3)]
    assert at == sorted(at)


def test_what_the_c_has_no_means_for_is_refused(tmp_path: Path) -> None:
    made = pipeline(chain(tmp_path))
    first, *others = made.parts
    with pytest.raises(InputError, match="has no plan"):
        emitted(replace(made, parts=(replace(first, plan=None), *others)))
    with pytest.raises(InputError, match="replicas"):
        emitted(replace(made, workers=(*made.workers, replace(made.workers[0], name="again"))))
    arenas = dict(made.arenas)
    with pytest.raises(InputError, match="several devices"):
        emitted(replace(made, arenas={**arenas, ("other", "ram"): next(iter(arenas.values()))}))
    between = next(fifo for fifo in made.fifos if fifo.source == "p0")
    both = replace(between, readers=(*between.readers, Reader("")))
    with pytest.raises(InputError, match="for a part and for the caller"):
        emitted(replace(made, fifos=tuple(both if fifo is between else fifo for fifo in made.fifos)))
