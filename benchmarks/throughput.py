"""Mappings of the eight networks of M table 3.2: on a simulated Jetson TX2, and measured on this machine.

    python benchmarks/throughput.py jetson MODELS     our gain on layer times scaled to published rates, beside theirs
    python benchmarks/throughput.py solvers MODELS    exact solver and genetic search: slowest processor, seconds
    python benchmarks/throughput.py here MODELS       predicted and measured on this machine, beside onnxruntime

MODELS is a folder with the networks as .onnx files. On the simulated board every layer has the same ratio of CPU to
GPU time: the GPU alone gives TensorRT's rate and the five cores that M uses, together, ARM CL's. So the gain over the
GPU is at most 4/5 of ARM CL / TensorRT, since a core drives the GPU. What M has beyond that is not in layer times.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from edgewright.cli.profile import lane_plans
from edgewright.mapping.assignment import assign_exact, single_processors
from edgewright.mapping.deploying import deployment_of
from edgewright.mapping.exact import MappingLimits
from edgewright.mapping.genetic import assign_genetic
from edgewright.mapping.goal import MappingGoal, map_for
from edgewright.mapping.measured import measure_mapping
from edgewright.mapping.problem import CorePool, Execution, MappingProblem
from edgewright.mapping.profiled import joining_tensors, problem_of
from edgewright.network import Network
from edgewright.network.read import read
from edgewright.run.pipeline import pipeline
from edgewright.run.profiling import measure_profile

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


def jetson(models: Path) -> None:
    print(f"{'network':20}{'ours':>8}{'bound':>8}{'gain %':>8}{'paper':>8}{'gain %':>8}{'most %':>8}{'s':>7}")
    for name, (cpus, gpu, both) in PUBLISHED.items():
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


def solvers(models: Path) -> None:
    """Slowest processor per frame in ms: pipelines, one processor for each layer by CP-SAT and by genetic search."""
    print(f"{'network':20}{'board':8}{'bound':>9}{'pipeline':>9}{'s':>6}{'CP-SAT':>9}{'s':>6}{'GA':>9}{'s':>6}")
    for name, (cpus, gpu, _) in PUBLISHED.items():
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


def here(models: Path, frames: int = 60) -> None:
    print(f"{'network':20}{'way':10}{'predicted':>10}{'measured':>10}{'ms':>9}{'measured':>10}{'onnxruntime':>12}")
    for name in PUBLISHED:
        path = models / f"{name}.onnx"
        network = read(path)
        problem = problem_of(network, measure_profile(network, lane_plans(network, None)), "this")
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
    if len(sys.argv) != 3 or sys.argv[1] not in ("jetson", "solvers", "here"):
        sys.exit(__doc__)
    {"jetson": jetson, "solvers": solvers, "here": here}[sys.argv[1]](Path(sys.argv[2]))
