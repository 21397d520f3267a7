"""Mutated plan files, held against what they compute: refused in a sentence, or right in the interpreter and in C.

A mutant is told by its seed alone. Plans of every kind are changed, those with selected kernels among them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from random import Random

from edgewright import read_model, samples
from edgewright.emit import TARGETS, Library, emit
from edgewright.emit.library import check_plan
from edgewright.errors import EdgewrightError
from edgewright.fusion.request import PlanRequest, make_plan
from edgewright.network import Network, random_inputs
from edgewright.network.kernels import execute
from edgewright.program import Plan, plan_text
from edgewright.program.codec import plan_from_json
from tests.helpers.emitting import WARNINGS
from tests.helpers.emitting_batch import agree, build_together
from tests.helpers.random_programs import random_program
from tests.program.plan_mutations import mutated
from tests.program.test_interpreter import agrees

FAMILIES = ("host", "cortex-m4", "rv32imc", "cortex-m55")
SOURCES, SEARCHED = 60, 20
SAMPLES = ("resnet8_int8", "ds_cnn")
FLAGS = WARNINGS


@dataclass(frozen=True)
class Source:
    """A plan that is right, as its file has it."""

    network: Network
    target: str
    text: str


@dataclass(frozen=True)
class Mutant:
    seed: int
    source: Source
    plan: Plan | None  # None where the file was refused
    library: Library | None
    refusal: str = ""


@cache
def source(number: int) -> Source:
    """The plan of a random program; two of three have their kernels selected."""
    program, target = random_program(number), FAMILIES[number % len(FAMILIES)]
    plan = emit(program.plan, TARGETS[target], program.network).plan if number % 3 else program.plan
    return Source(program.network, target, plan_text(plan))


@cache
def searched(number: int) -> Source:
    """The plan of a sample, as a planner that looks for little RAM makes it."""
    asked = (
        PlanRequest(plain=True),
        PlanRequest(),
        PlanRequest(phases=True),
        PlanRequest(phases=True, pull_rows=True),
        PlanRequest(minimise_ram=True, max_overhead=0.5),
    )
    network, target = read_model(samples.build(SAMPLES[number % 2])), FAMILIES[number % len(FAMILIES)]
    plan = make_plan(network, asked[number % len(asked)], None, target)
    return Source(network, target, plan_text(emit(plan, TARGETS[target], network).plan if number % 3 else plan))


def mutant(seed: int, with_samples: bool = False) -> Mutant:
    """The mutant of a seed, read and emitted as far as it is accepted. What is no sentence of ours is raised."""
    random = Random(seed)
    is_sample = with_samples and random.random() < 0.1
    origin = searched(random.randrange(SEARCHED)) if is_sample else source(random.randrange(SOURCES))
    text = json.dumps(mutated(random, json.loads(origin.text)))
    try:
        plan = plan_from_json(text)
        check_plan(plan, origin.network, None)
        library = emit(plan, TARGETS[origin.target], origin.network, name=f"m{seed}")
    except EdgewrightError as error:
        return Mutant(seed, origin, None, None, str(error))
    return Mutant(seed, origin, plan, library)


def check_mutants(seeds: range, with_samples: bool = False) -> list[Mutant]:
    """Every mutant is refused in one sentence, or computes what the network computes."""
    found = [mutant(seed, with_samples) for seed in seeds]
    assert not [each for each in found if "\n" in each.refusal or len(each.refusal) > 400]
    accepted = [each for each in found if each.library is not None]
    for each in accepted:
        assert agrees(each.plan, each.source.network, each.seed), each.seed
    natives = build_together([each.library for each in accepted], FLAGS)
    for each, native in zip(accepted, natives, strict=True):
        network = each.source.network
        inputs = random_inputs(network, each.seed)
        agree(network, native.run(inputs, poison=0x55), execute(network, inputs))
    return found
