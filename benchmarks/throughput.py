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

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import repeat
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from edgewright.cli.profile import measured_here
from edgewright.mapping.answer import MappingAnswer
from edgewright.mapping.assignment import assign_exact, single_processors
from edgewright.mapping.deploy import deployment_of
from edgewright.mapping.exact import MappingLimits
from edgewright.mapping.goal import MappingGoal, map_for
from edgewright.mapping.paper.genetic import assign_genetic
from edgewright.mapping.problem import CorePool, Execution, MappingProblem
from edgewright.mapping.profiled import joining_tensors, problem_of
from edgewright.network import Network, random_inputs
from edgewright.network.interface import stored_inputs
from edgewright.network.read import read
from edgewright.network.reference import reference, to_file_layout
from edgewright.run.build import build_pipeline, plan_for_host, whole_network
from edgewright.run.machine import core_kinds, pin, resident_bytes, usable_cores
from edgewright.run.measurement import measured
from edgewright.run.pipeline import Pipeline, pipeline

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
    """What pipelines, CP-SAT and the genetic search come to, in ms a frame, and the seconds that each takes.

    Slowest: the busiest processor. Balance: the differences of loads, as published, which pipelines do not minimise.
    """
    print(
        f"{'network':20}{'board':8}{'fitness':9}{'bound':>9}{'pipeline':>9}{'s':>6}{'CP-SAT':>9}{'s':>6}{'GA':>9}{'s':>6}"
    )
    for name in names:
        cpus, gpu, _ = PUBLISHED[name]
        network = read(models / f"{name}.onnx")
        for title, there in (("4 CPUs", 0.0), ("4 + GPU", float(gpu))):
            problem = scaled_problem(network, cpus, there, 5 if there else 4)
            processors = single_processors(problem)
            answer, spent = _timed(map_for, problem)
            pipelines = f"{1e3 / answer.bound:9.3f}{1e3 * answer.timing.period:9.3f}{spent:6.1f}"
            for goal in ("slowest", "balance"):
                genetic = _timed(assign_genetic, processors, goal)
                exact = _timed(assign_exact, processors, goal, genetic[0].genes)
                assert exact[0].value <= genetic[0].value
                figures = "".join(f"{1e3 * one.value:9.3f}{used:6.1f}" for one, used in (exact, genetic))
                shown = pipelines if goal == "slowest" else f"{'':24}"
                print(f"{name:20}{title:8}{goal:9}{shown}{figures}", flush=True)


def _timed(solve: Callable[..., Any], *given: object) -> tuple[Any, float]:
    start = time.perf_counter()
    return solve(*given), time.perf_counter() - start


def cores(models: Path, names: list[str]) -> None:
    """1, 2, 4, ... cores of this machine: replicas, pipeline and lanes against the bound, in frames a second."""
    there = max(len(kind.cores) for kind in core_kinds())
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= there]
    print(f"{'network':20}{'way':10}{'cores':>6}{'bound':>9}{'predicted':>10}{'measured':>10}{'ms':>9}{'measured':>10}")
    for name in names:
        network = read(models / f"{name}.onnx")
        profile = measured_here(network, (), None, 5)
        problems = {n: problem_of(network, profile, "this", {"cpu": n}) for n in counts}
        asked = [(way, n) for way in WAYS for n in counts if n > 1 or way == "replicas"]
        answers = {(way, n): map_for(problems[n], MappingGoal(limits=WAYS[way])) for way, n in asked}
        with TemporaryDirectory(prefix="edgewright-") as folder, ProcessPoolExecutor(there) as pool:
            folders = [f"{folder}/{way}{n}" for way, n in asked]
            built = list(pool.map(_built, answers.values(), repeat(network), folders))  # all, before anything is timed
            for (way, n), (answer, path) in zip(asked, zip(answers.values(), built, strict=True), strict=True):
                with pipeline(path) as running:
                    frames = max(20, 12 * n, round(2 * answer.throughput))  # two seconds
                    ours = measured(running, [random_inputs(network, 1)], frames)
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


def here(models: Path, names: list[str]) -> None:
    """Each way predicted and measured, beside onnxruntime, all in turns; the bars of a mapping over all cores."""
    for name in names:
        path = models / f"{name}.onnx"
        network = read(path)
        problem = problem_of(network, measured_here(network, (), None), "this")
        with TemporaryDirectory(prefix="edgewright-") as folder:
            answers = build_ways(problem, network, Path(folder))
            show_ways(path, network, answers, Path(folder))


def build_ways(problem: MappingProblem, network: Network, folder: Path) -> dict[str, MappingAnswer]:
    """The best mapping of each way, built; and the network on each core alone."""
    answers = {way: map_for(problem, MappingGoal(limits=limits)) for way, limits in WAYS.items()}
    for way, answer in answers.items():
        build_pipeline(deployment_of(answer, network, "this"), folder / way)
    for core in usable_cores():
        build_pipeline(whole_network(network, plan_for_host(network), [(core,)]), folder / f"core{core}")
    return answers


def show_ways(path: Path, network: Network, answers: dict[str, MappingAnswer], folder: Path, rounds: int = 5) -> None:
    found = in_turns(path, network, folder, list(answers), rounds)
    rate = {what: float(np.median([one[0] for one in each])) for what, each in found.items()}
    for way, answer in answers.items():
        late = float(np.median([one[1] for one in found[way]]))
        print(
            f"{path.stem:20}{way:10}{answer.throughput:9.2f}{rate[way]:9.2f}{rate[way] / answer.throughput - 1:+7.1%}"
            f"{1e3 * answer.latency:9.2f}{1e3 * late:9.2f}{late / answer.latency - 1:+7.1%}"
        )
    best, growth = max(rate[way] for way in answers), [resident_growth(folder / "replicas"), resident_growth(path)]
    print(
        f"{path.stem:20}best {best:.2f}/s: {best / rate['each core alone']:.3f} of the cores alone, "
        f"{best / rate['one session']:.3f} of one session, {best / rate['two sessions']:.3f} of two; "
        f"RSS {growth[0] / 1e6:.1f} MB, {growth[0] / growth[1]:.2f} of two sessions",
        flush=True,
    )


def in_turns(
    path: Path, network: Network, folder: Path, ways: list[str], rounds: int
) -> dict[str, list[tuple[float, float]]]:
    """Frames a second and the latency of each, round by round."""
    inputs = [stored_inputs(network, random_inputs(network, seed)) for seed in range(4)]
    feed = {n: np.ascontiguousarray(to_file_layout(network, n, v)) for n, v in random_inputs(network).items()}
    cores = usable_cores()
    settings = [(n, is_parallel) for n in dict.fromkeys((1, len(cores))) for is_parallel in (False, True)]
    sessions = {one: session(path, *one) for one in settings}
    fastest = max(settings, key=lambda one: _repeated(lambda: sessions[one].run(None, feed), 1.0)[0])
    two = [session(path, 1, False) for _ in cores]
    with ExitStack() as stack:
        running = {way: stack.enter_context(pipeline(folder / way)) for way in ways}
        alone = [stack.enter_context(pipeline(folder / f"core{core}")) for core in cores]
        count = {way: max(8, round(2 * measured(one, inputs, 4).frames_per_s)) for way, one in running.items()}
        runs: dict[str, Callable[[], tuple[float, float]]] = {
            way: partial(_streamed, running[way], inputs, count[way]) for way in ways
        }
        each = count[ways[0]] // len(cores)
        runs["each core alone"] = lambda: _together([partial(_streamed, one, inputs, each) for one in alone])
        runs["one session"] = lambda: _repeated(lambda: sessions[fastest].run(None, feed), 2.0)
        runs["two sessions"] = lambda: _together(
            [
                partial(_repeated, partial(one.run, None, feed), 2.0, (core,))
                for one, core in zip(two, cores, strict=True)
            ]
        )
        found: dict[str, list[tuple[float, float]]] = {what: [] for what in runs}
        for _ in range(rounds):
            for what, run in runs.items():
                found[what].append(run())
    return found


def _streamed(running: Pipeline, inputs: list[Any], frames: int) -> tuple[float, float]:
    figures = measured(running, inputs, frames)
    return figures.frames_per_s, figures.latency_s


def _repeated(run: Callable[[], object], seconds: float, cores: tuple[int, ...] = ()) -> tuple[float, float]:
    """One frame after the other for so long; the thread is new, so it may stay on its core."""
    pin(cores)
    run()
    start, frames = time.perf_counter(), 0
    while frames < 2 or time.perf_counter() - start < seconds:
        run()
        frames += 1
    spent = time.perf_counter() - start
    return frames / spent, spent / frames


def _together(runs: list[Callable[[], tuple[float, float]]]) -> tuple[float, float]:
    with ThreadPoolExecutor(len(runs)) as pool:
        found = list(pool.map(lambda run: run(), runs))
    return sum(rate for rate, _ in found), max(late for _, late in found)


def session(path: Path, threads: int, is_parallel: bool) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, threads if is_parallel else 1
    mode = onnxruntime.ExecutionMode
    options.execution_mode = mode.ORT_PARALLEL if is_parallel else mode.ORT_SEQUENTIAL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def resident_growth(what: Path) -> int:
    """Bytes by which a process of its own grows: with a pipeline in a folder, or with two sessions of a model file."""
    command = [sys.executable, __file__, "grow", str(what)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def grow(what: Path, _: list[str]) -> None:
    if what.is_dir():
        import edgewright.program.deployment_schema  # noqa: F401  (what reads files does not count)

        before = resident_bytes()
        with pipeline(what) as running:
            shapes = {name: np.zeros(tensor.shape, tensor.dtype.numpy) for name, tensor in running.inputs.items()}
            measured(running, [shapes], 4)
            print(resident_bytes() - before)
        return
    import onnxruntime  # noqa: F401  (its own code does not count)

    before = resident_bytes()
    both = [session(what, 1, False) for _ in range(2)]  # held until both have been counted
    for one in both:
        shapes = {each.name: np.zeros(each.shape, np.float32) for each in one.get_inputs()}
        for _ in range(4):
            one.run(None, shapes)
    print(resident_bytes() - before)


if __name__ == "__main__":
    commands = {"jetson": jetson, "solvers": solvers, "here": here, "cores": cores, "gpu": gpu, "grow": grow}
    if len(sys.argv) < 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](Path(sys.argv[2]), sys.argv[3:] or list(PUBLISHED))
