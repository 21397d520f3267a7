"""An interrupt ends a search, and what it has found so far is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from click.testing import CliRunner

from edgewright import cpsat, load_plan, read_model, samples
from edgewright.board.toolchain import Toolchain, end_compilers
from edgewright.cli import main
from edgewright.files import write_together
from edgewright.fusion.choice import is_interrupted
from edgewright.fusion.paper.trials import TrialEvaluator
from edgewright.fusion.request import make_plan
from edgewright.fusion.routes import Routes
from edgewright.fusion.search import PlanSearch
from edgewright.interrupts import interruptible
from edgewright.interrupts import redeliver_interrupts as interrupts_are_heard
from edgewright.memory.layout import exact
from edgewright.memory.request import PlanRequest
from edgewright.network import random_inputs
from edgewright.network.kernels import execute
from edgewright.network.reference import compare
from edgewright.program import interpret

NAME = "stahl_running_example"


@pytest.fixture(autouse=True)
def heard():
    """Interrupts are heard, here and in programs that are started: in the background of a shell they may not be."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return samples.write(NAME, tmp_path_factory.mktemp("models"))


@pytest.fixture
def interrupted_at(monkeypatch):
    """Interrupts the n-th call of a method, as the handler of the signal does."""

    def arrange(owner, name, call):
        calls = []
        whole = getattr(owner, name)

        def counted(*args, **kwargs):
            calls.append(name)
            if len(calls) == call:
                raise KeyboardInterrupt
            return whole(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    return arrange


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.mark.parametrize("call", [1, 3])
def test_the_least_ram_so_far(model, interrupted_at, call, tmp_path):
    uninterrupted = make_plan(read_model(model), PlanRequest(minimise_ram=True, max_slowdown=9.0)).peak_bytes
    interrupted_at(Routes, "cheapest", call)
    result = run("plan", model, "--minimise", "ram", "--max-slowdown", "10x", "-o", tmp_path / "plan.json")
    assert result.exit_code == 130, result.output
    assert "interrupted; best so far" in result.output and "wrote" in result.output
    plan = load_plan(tmp_path / "plan.json")
    assert is_interrupted(plan) and plan.peak_bytes >= uninterrupted
    network = read_model(model)
    inputs = random_inputs(network, seed=1)
    assert compare(network, interpret(plan, inputs, network), execute(network, inputs)).passes


def test_a_signal_is_an_interrupt(model, tmp_path):
    """The same in a process of its own, which gets a signal in the middle of its search."""
    program = """
import os, signal, sys
from edgewright.board.toolchain import Toolchain, end_compilers
from edgewright.cli import main
from edgewright.fusion.routes import Routes
whole = Routes.cheapest
def cheapest(*args):
    os.kill(os.getpid(), signal.SIGINT)
    return whole(*args)
Routes.cheapest = cheapest
main(sys.argv[1:])
"""
    options = ["--minimise", "ram", "--max-slowdown", "10x", "-o", str(tmp_path / "plan.json")]
    done = subprocess.run([sys.executable, "-c", program, "plan", str(model), *options], capture_output=True, text=True)
    assert done.returncode == 130 and "interrupted; best so far" in done.stdout, done.stderr
    assert is_interrupted(load_plan(tmp_path / "plan.json"))


def test_it_is_said_in_json_too(model, interrupted_at):
    assert json.loads(run("plan", model, "--minimise", "ram", "--json").output)["interrupted"] is False
    interrupted_at(Routes, "cheapest", 1)
    result = run("plan", model, "--minimise", "ram", "--max-slowdown", "10x", "--json")
    assert result.exit_code == 130 and json.loads(result.output)["interrupted"] is True


def test_a_front_so_far(model, interrupted_at):
    whole = json.loads(run("plan", model, "--pareto", "--json").output)
    interrupted_at(Routes, "cheapest", 2)
    result = run("plan", model, "--pareto")
    assert result.exit_code == 130 and "interrupted; best so far" in result.output
    assert f"{whole[-1][0]:,}" not in result.output  # the least RAM takes the whole search


def test_the_method_of_the_paper_so_far(model, interrupted_at):
    interrupted_at(TrialEvaluator, "tried_all", 2)
    result = run("plan", model, "--method", "paper", "--json")
    assert result.exit_code == 130 and json.loads(result.output)["interrupted"] is True


def test_compile_goes_on_with_it(model, interrupted_at, tmp_path):
    """The interrupt is for the search alone."""
    interrupted_at(Routes, "cheapest", 1)
    options = ("--minimise", "ram", "--max-slowdown", "10x", "--no-verify", "-o", tmp_path / "out")
    result = run("compile", model, *options)
    assert result.exit_code == 0, result.output
    assert "the search for the plan was interrupted; best so far" in result.output
    assert is_interrupted(load_plan(tmp_path / "out" / "plan.json"))


def test_an_application_tells_what_it_has_come_to(interrupted_at, tmp_path):
    description = samples.write_application("tiny_application", tmp_path)
    interrupted_at(PlanSearch, "_lower", 1)
    result = run("app", description)
    assert result.exit_code == 130, result.output
    assert "interrupted; best so far: " in result.output and "nothing unfinished was written" in result.output


def test_nothing_is_kept_where_nothing_fits_yet(model, interrupted_at):
    interrupted_at(Routes, "cheapest", 1)
    result = run("plan", model, "--ram", "8K")
    assert result.exit_code == 130 and "interrupted; nothing unfinished was written" in result.output


def test_solvers_leave_interrupts_to_the_search():
    """The solver of layouts would take a signal for itself, and the search would go on."""
    solver = exact._solver(exact.Budget(1, 1.0))
    cpsat.solve(solver, cpsat.cp_model.CpModel())
    assert solver.parameters.catch_sigint_signal is False


@pytest.mark.parametrize("place", ["a solver", "an emulator"])
def test_long_calls_into_c_end_at_once(place):
    """A thread sleeps until it is stopped: without that, the signal would wait for its end."""
    asleep, stopped = threading.Event(), threading.Event()

    def call():
        asleep.set()
        return stopped.wait(30)

    threading.Thread(target=lambda: asleep.wait() and signal.raise_signal(signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(call, stopped.set)
    assert stopped.is_set(), place


@pytest.mark.parametrize("when", range(4))
def test_calls_that_have_not_quite_begun_are_stopped_too(when):
    """A solver hears `stop` while it solves, and neither before nor after; the signal comes at any moment."""
    begun, stopped = threading.Event(), threading.Event()

    def call():
        threading.Event().wait(0.02 * when)
        begun.set()
        return stopped.wait(30)

    threading.Timer(0.03, signal.raise_signal, (signal.SIGINT,)).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(call, lambda: begun.is_set() and stopped.set())
    assert stopped.is_set()


def test_interrupts_that_python_drops_come_again():
    """One that comes while an object goes is only printed, since nobody could catch it there."""

    class Going:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def wait():
        Going()
        threading.Event().wait(30)

    with interrupts_are_heard(), pytest.raises(KeyboardInterrupt):
        wait()


def test_compilers_that_threads_wait_for_are_ended(tmp_path):
    """With all that they have started: the output of those would be waited for."""
    sleeping = tmp_path / "begun"
    driver = Toolchain("a driver", ("sh", "-c", f"sh -c 'touch {sleeping}; sleep 30'; true"), (), is_gcc=True)

    def interrupt():
        while not sleeping.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(lambda: driver.run([], tmp_path), end_compilers)


def test_files_that_belong_together_are_written_all_or_none(tmp_path, monkeypatch):
    """An interrupt among them waits until all are in place; one before leaves nothing."""
    files = {tmp_path / name: name * 3 for name in "abc"}
    replaced = os.replace

    def replace(source, target):
        signal.raise_signal(signal.SIGINT)
        replaced(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write_together(files)
    assert {path: path.read_text() for path in tmp_path.iterdir()} == files
    monkeypatch.setattr(os, "chmod", lambda *_: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        write_together({tmp_path / "d": "d"})
    assert {*tmp_path.iterdir()} == {*files}


def interrupted_command(count: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The installed command, to which its search sends so many signals, and waits a moment after each."""
    program = """
import os, signal, sys, time
from edgewright.fusion.routes import Routes
from edgewright.start import run
whole, count = Routes.cheapest, int(sys.argv.pop())
def cheapest(*args):
    Routes.cheapest = whole
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(9)
    except KeyboardInterrupt:
        if count > 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(9)
        raise
Routes.cheapest = cheapest
run()
"""
    words = [sys.executable, "-c", program, *map(str, arguments), str(count)]
    return subprocess.run(words, capture_output=True, text=True)


def test_a_search_says_that_it_stops_and_gives_its_best(model, tmp_path):
    done = interrupted_command(
        1, "plan", model, "--minimise", "ram", "--max-slowdown", "10x", "-o", tmp_path / "plan.json"
    )
    assert done.returncode == 130 and done.stderr.strip() == "stopping; Ctrl-C again to discard"
    assert "interrupted; best so far" in done.stdout and is_interrupted(load_plan(tmp_path / "plan.json"))


def test_a_second_interrupt_discards_what_was_found(model, tmp_path):
    done = interrupted_command(
        2, "plan", model, "--minimise", "ram", "--max-slowdown", "10x", "-o", tmp_path / "plan.json"
    )
    assert done.returncode == 130 and "discarded; nothing unfinished was written" in done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "plan.json").exists()


@pytest.mark.parametrize("module", ["click", "networkx"])
def test_an_interrupt_while_modules_are_loaded_ends_the_command(model, module):
    """No interrupt is lost in a module that is being imported, and no trace is shown."""
    program = f"""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from edgewright.start import run
run()
"""
    words = [sys.executable, "-c", program, "plan", str(model), "--page", os.devnull]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode in (130, -signal.SIGINT) and "Traceback" not in done.stderr
    assert not done.stdout
