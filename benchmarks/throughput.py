"""Mappings of the eight networks of M table 3.2: on a simulated Jetson TX2, and measured on this machine.

    python benchmarks/throughput.py jetson MODELS     our gain on layer times scaled to published rates, beside theirs
    python benchmarks/throughput.py solvers MODELS    exact solver and genetic search: slowest processor, seconds
    python benchmarks/throughput.py here MODELS       predicted and measured on this machine, beside onnxruntime
    python benchmarks/throughput.py cores MODELS [NETWORK ...]   replicas, pipeline, lanes on 1, 2, 4, ... cores
    python benchmarks/throughput.py gpu MODELS [NETWORK ...]     cores and a GPU in one deployment

MODELS is a folder with the networks as .onnx files. On the simulated board every layer has the same ratio of CPU to
GPU time: the GPU alone gives TensorRT's rate and the five cores that M uses, together, ARM CL's. So the gain over the
GPU is at most 4/5 of ARM CL / TensorRT, since a core drives the GPU. What M has beyond that is not in layer times.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import repeat
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from edgewright.cli.profile import measured_here
from edgewright.mapping.answer import MappingAnswer
from edgewright.mapping.assignment import assign_exact, single_processors
from edgewright.mapping.deploying import deployment_of
from edgewright.mapping.exact import MappingLimits
from edgewright.mapping.genetic import assign_genetic
from edgewright.mapping.goal import MappingGoal, map_for
from edgewright.mapping.measured import measure_mapping
from edgewright.mapping.problem import CorePool, Execution, MappingProblem
from edgewright.mapping.profiled import joining_tensors, problem_of
from edgewright.network import Network, random_inputs
from edgewright.network.read import read
from edgewright.network.reference import reference
from edgewright.run.building import build_pipeline
from edgewright.run.machine import core_kinds, usable_cores
from edgewright.run.measuring import measured
from edgewright.run.pipeline import pipeline

# Frames a second of M table 3.2: ARM CL, TensorRT, both together.
PUBLISHED = {
    "alexnet": (8.7, 104, 140),
    "vgg19": (1.84, 15, 21.3),
    "googlenet": (3.9, 118, 154),
    "tiny_yolov2": (3.2, 131, 133),
    "light_inception_v1": (4.25, 122, 166),
    "resnet18": (8.7, 137, 143),
    "densenet121": (3, 62, 69),
    "emotion_ferplus": (21.2, 325, 416),
}
CORES = 5  # of the six, as M uses them
WAYS = {
    "replicas": MappingLimits(stages=1, lanes=1),
    "pipeline": MappingLimits(replicas=1, lanes=1),
    "lanes": MappingLimits(stages=1, replicas=1),
}


def scaled_problem(network: Network, cpus: float, gpu: float, cores: int = CORES) -> MappingProblem:
    """Layers weighed by their work, so that all cores give `cpus` frames a second, and the GPU alone `gpu`; 0: none."""
    work = [max(network.macs(layer), network.tensors[layer.output].size) for layer in network.layers]
    share = [one / sum(work) for one in work]
    executions = [Execution("cpu", 1, "native", tuple(one * cores / cpus for one in share))]
    pools = [CorePool("cpu", cores)]
    if gpu:
        executions.append(Execution("gpu", 1, "torch", tuple(one / gpu for one in share), "cpu"))
        pools.append(CorePool("gpu", 1, True))
    names = tuple(layer.name for layer in network.layers)
    return MappingProblem(network.name, names, tuple(joining_tensors(network)), tuple(pools), tuple(executions))


def jetson(models: Path, names: list[str]) -> None:
    print(f"{'network':20}{'ours':>8}{'bound':>8}{'gain %':>8}{'paper':>8}{'gain %':>8}{'most %':>8}{'s':>7}")
    for name in names:
        cpus, gpu, both = PUBLISHED[name]
        problem = scaled_problem(read(models / f"{name}.onnx"), cpus, gpu)
        start = time.perf_counter()
        answer = map_for(problem)
        seconds = time.perf_counter() - start
        gain, theirs, most = answer.throughput / gpu - 1, both / gpu - 1, 0.8 * cpus / gpu
        print(
            f"{name:20}{answer.throughput:8.2f}{answer.bound:8.2f}{100 * gain:8.2f}{both:8.1f}{100 * theirs:8.1f}"
            f"{100 * most:8.2f}{seconds:7.1f}",
            flush=True,
        )


def solvers(models: Path, names: list[str]) -> None:
    """Slowest processor per frame in ms: pipelines, one processor for each layer by CP-SAT and by genetic search."""
    print(f"{'network':20}{'board':8}{'bound':>9}{'pipeline':>9}{'s':>6}{'CP-SAT':>9}{'s':>6}{'GA':>9}{'s':>6}")
    for name in names:
        cpus, gpu, _ = PUBLISHED[name]
        network = read(models / f"{name}.onnx")
        for title, there in (("4 CPUs", 0.0), ("4 + GPU", float(gpu))):
            problem = scaled_problem(network, cpus, there, 5 if there else 4)
            processors = single_processors(problem)
            marks = [time.perf_counter()]
            answer = map_for(problem)
            marks.append(time.perf_counter())
            exact = assign_exact(processors)
            marks.append(time.perf_counter())
            genetic = assign_genetic(processors, "slowest")
            marks.append(time.perf_counter())
            spent = np.diff(marks)
            values = (answer.timing.period, exact.value, genetic.value)
            figures = "".join(f"{1e3 * one:9.3f}{used:6.1f}" for one, used in zip(values, spent, strict=True))
            print(f"{name:20}{title:8}{1e3 / answer.bound:9.3f}{figures}", flush=True)


def cores(models: Path, names: list[str]) -> None:
    """1, 2, 4, ... cores of this machine: replicas, pipeline and lanes against the bound, in frames a second."""
    there = max(len(kind.cores) for kind in core_kinds())
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= there]
    print(
        f"{'network':20}{'way':10}{'cores':>6}{'bound':>9}{'predicted':>10}{'measured':>10}{'ms':>9}{'measured':>10}"
    )
    for name in names:
        network = read(models / f"{name}.onnx")
        profile = measured_here(network, (), None, 5)
        problems = {n: problem_of(network, profile, "this", {"cpu": n}) for n in counts}
        asked = [(way, n) for way in WAYS for n in counts if n > 1 or way == "replicas"]
        answers = {(way, n): map_for(problems[n], MappingGoal(limits=WAYS[way])) for way, n in asked}
        with TemporaryDirectory(prefix="edgewright-") as folder, ProcessPoolExecutor(there) as pool:
            built = pool.map(_built, answers.values(), repeat(network), [f"{folder}/{way}{n}" for way, n in asked])
            for (way, n), (answer, path) in zip(asked, zip(answers.values(), built, strict=True), strict=True):
                with pipeline(path) as running:
                    ours = measured(running, [random_inputs(network, 1)], max(20, 12 * n))
                print(
                    f"{name:20}{way:10}{n:6}{answer.bound:9.2f}{answer.throughput:10.2f}{ours.frames_per_s:10.2f}"
                    f"{1e3 * answer.latency:9.2f}{1e3 * ours.latency_s:10.2f}",
                    flush=True,
                )


def _built(answer: MappingAnswer, network: Network, folder: str) -> str:
    build_pipeline(deployment_of(answer, network, "this"), Path(folder))
    return folder


def gpu(models: Path, names: list[str], frames: int = 300) -> None:
    """Cores and a GPU in one deployment beside onnxruntime: the GPU with all layers, or without the first third."""
    print(f"{'network':20}{'GPU has':9}{'bound':>9}{'predicted':>10}{'measured':>10}{'worst':>10}  stages")
    for name in names:
        path = models / f"{name}.onnx"
        network = read(path)
        theirs = reference(path, network)
        profile = measured_here(network, ("native", "torch"), 1, 5)
        whole = problem_of(network, profile, "this", {"cpu": min(4, len(usable_cores()))})
        few = tuple(_without(one, len(network.layers) // 3) for one in whole.executions)
        for title, problem in (("all", whole), ("2/3", replace(whole, executions=few))):
            answer = map_for(problem)
            stages = [(stage.execution.pool, stage.replicas) for stage in answer.mapping.stages]
            inputs = [random_inputs(network, seed) for seed in range(7)]
            wanted = [theirs.run(one) for one in inputs]
            with pipeline(deployment_of(answer, network, "this")) as running:
                worst = 0.0
                for number, found in enumerate(running(inputs[i % 7] for i in range(frames))):
                    for output, value in wanted[number % 7].items():
                        worst = max(worst, float(np.abs(found[output] - value).max() / np.abs(value).max()))
                assert number == frames - 1
                ours = measured(running, inputs, frames)
            print(
                f"{name:20}{title:9}{answer.bound:9.2f}{answer.throughput:10.2f}{ours.frames_per_s:10.2f}{worst:10.1e}"
                f"  {' -> '.join(f'{pool} x {n}' for pool, n in stages)}",
                flush=True,
            )


def _without(execution: Execution, layers: int) -> Execution:
    """A GPU that lacks the first layers."""
    if execution.pool != "gpu":
        return execution
    return replace(execution, seconds=(inf,) * layers + execution.seconds[layers:])


def here(models: Path, names: list[str], frames: int = 60) -> None:
    print(f"{'network':20}{'way':10}{'predicted':>10}{'measured':>10}{'ms':>9}{'measured':>10}{'onnxruntime':>12}")
    for name in names:
        path = models / f"{name}.onnx"
        network = read(path)
        problem = problem_of(network, measured_here(network, (), None), "this")
        for way, limits in WAYS.items():
            answer = map_for(problem, MappingGoal(limits=limits))
            with pipeline(deployment_of(answer, network, "this")) as running:
                found = measure_mapping(answer, network, path, running, frames)
            theirs = found.onnxruntime.frames_per_s if found.onnxruntime else 0.0
            print(
                f"{name:20}{way:10}{answer.throughput:10.2f}{found.ours.frames_per_s:10.2f}{1e3 * answer.latency:9.2f}"
                f"{1e3 * found.ours.latency_s:10.2f}{theirs:12.2f}",
                flush=True,
            )


if __name__ == "__main__":
    commands = {"jetson": jetson, "solvers": solvers, "here": here, "cores": cores, "gpu": gpu}
    if len(sys.argv) < 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](Path(sys.argv[2]), sys.argv[3:] or list(PUBLISHED))
