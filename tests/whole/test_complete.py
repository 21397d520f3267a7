"""Complete plans: flash, RAM and stack as planned are those of the linker; kernels are judged; the stack counts."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import edgewright
from edgewright import complete_plan, samples
from edgewright.cli import main
from edgewright.compiling import make_library
from edgewright.complete_plan import CompletePlan, complete, find_complete
from edgewright.emit import TARGETS, Options, Rounding
from edgewright.emit.firmware import measure
from edgewright.errors import EdgewrightError, Infeasible, InputError
from edgewright.fusion.request import PlanRequest
from edgewright.kernels import catalogue
from edgewright.kernels.check import faults as kernel_faults
from edgewright.kernels.printing.constants import Constants
from edgewright.kernels.sites import NetworkFacts
from edgewright.memory import fit, plan
from edgewright.network import Network, random_inputs
from edgewright.network.read import read_bytes
from edgewright.platform import load_board
from edgewright.program import FaultKind, Plan, faults, plan_text
from edgewright.program.codec import plan_from_json
from edgewright.program.selection import CallKey, Linked, Packed, Selection, packed_bytes
from tests.helpers.emitting import emit
from tests.helpers.parameters import each_once
from tests.helpers.random_models import draw_model
from tests.helpers.tools import needs_board

SMALL = ("ds_cnn_int8", "minakova_example_int8", "stahl_running_example")
CORES = ("cortex-m4", "rv32imc")
# Networks of the corpus that microcontrollers run.
MCU = ("mlperf_kws_ref_int8", "tflm_micro_speech_int8")
LARGER = (
    "mlperf_ad01_int8",
    "mlperf_ic_resnet8_int8",
    "mlperf_vww96_int8",
    "st_miniresnet_1stack_64x50_int8",
    "st_mobilenet_v1_0.25_224_imagenet_int8",
    "st_mobilenet_v2_0.35_128_imagenet_int8",
    "tinyengine_mcunet_vww_int8",
)
REQUESTS = {"whole": PlanRequest(), "least": PlanRequest(minimise_ram=True)}


@cache
def network_of(name: str) -> Network:
    return edgewright.read_model(samples.build(name))


@cache
def completed(name: str, target: str) -> CompletePlan:
    return find_complete(network_of(name), PlanRequest(), None, TARGETS[target])


def linked_as_planned(done: CompletePlan) -> None:
    """The plan's promises beside what the linker says of the firmware that runs."""
    made, network, target = done.plan, done.library.network, done.library.target
    assert list(faults(made)) == []
    assert list(kernel_faults(made, NetworkFacts(network, target, done.library.options))) == []
    flag = done.library.options.optimise_flag(target)
    found = measure(done.library, random_inputs(network, 0), optimise=flag)
    linked = made.linked
    assert linked is not None and done.not_counted == ""
    assert (found.flash_weights, found.flash_code, found.flash_runtime) == (
        linked.weights_bytes,
        linked.code_bytes,
        linked.runtime_bytes,
    )
    assert found.flash == made.flash_bytes
    assert (found.ram_linked, found.stack_bound, found.compiler) == (
        made.peak_bytes,
        made.stack_bytes,
        linked.compiler,
    )
    assert 0 < found.stack_bytes <= made.stack_bytes


@pytest.mark.parametrize(("name", "target"), each_once(SMALL, CORES))
def test_samples_are_linked_as_planned(name, target):
    needs_board(target)
    linked_as_planned(completed(name, target))


@pytest.mark.parametrize(
    ("name", "asked", "target"),
    [
        *each_once(MCU, [*REQUESTS], CORES),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in product(LARGER, REQUESTS, CORES)),
    ],
)
def test_models_of_the_corpus_are_linked_as_planned(name, asked, target):
    root = os.environ.get("EDGEWRIGHT_CORPUS")
    if not root:
        pytest.skip("set EDGEWRIGHT_CORPUS to a folder with models/ to test real models")
    needs_board(target)
    network = edgewright.read_model(Path(root) / "models" / f"{name}.tflite")
    linked_as_planned(find_complete(network, REQUESTS[asked], None, TARGETS[target]))


def test_layers_in_parts_and_pulled_rows_are_linked_as_planned():
    needs_board("cortex-m4")
    asked = PlanRequest(minimise_ram=True, pull_rows=True)
    linked_as_planned(find_complete(network_of("ds_cnn_int8"), asked, None, TARGETS["cortex-m4"]))


@pytest.mark.parametrize("target", ["cortex-m4", pytest.param("rv32imc", marks=pytest.mark.slow)])
def test_weights_of_odd_sizes_are_linked_as_planned(target):
    """Compilers that turn the order of arrays round leave other gaps between them."""
    needs_board(target)
    network = read_bytes(draw_model("tflite int8", 8), name="odd")
    done = find_complete(network, PlanRequest(minimise_ram=True), None, TARGETS[target])
    assert any(each.bytes % each.alignment for each in done.plan.packed)
    linked_as_planned(done)


def test_zig_links_as_it_says():
    needs_board("cortex-m4", zig=True)
    done = completed("ds_cnn_int8", "cortex-m4")
    linked = complete_plan.link(done.library, zig=True)
    found = measure(done.library, random_inputs(done.library.network, 0), zig=True)
    assert (linked.flash_bytes, linked.stack_bytes) == (found.flash, found.stack_bound)
    assert linked.weights_bytes == packed_bytes(done.plan.packed)


# The verdict


def test_plan_and_compile_agree(tmp_path):
    """Weights that fit the flash, and do not with the code beside them."""
    needs_board("cortex-m4")
    done = completed("ds_cnn_int8", "cortex-m4")
    model = samples.write("ds_cnn_int8", tmp_path)
    weights, flash = done.plan.linked.weights_bytes, done.plan.flash_bytes
    for size, message in ((weights, "does not fit"), (flash - 1, "1 B more than the"), (flash, "")):
        board = _board(tmp_path, ram=64 << 10, flash=size)
        planned = CliRunner().invoke(main, ["plan", str(model), "--board", str(board)])
        made = CliRunner().invoke(
            main, ["compile", str(model), "--board", str(board), "--no-verify", "-o", str(tmp_path / f"out{size}")]
        )
        assert planned.exit_code == made.exit_code == (1 if message else 0), planned.output + made.output
        assert message in planned.output and message in made.output
        if message:
            assert f"needs {flash:,} B of flash" in planned.output and "B of weights and" in planned.output


def _board(folder: Path, ram: int, flash: int) -> Path:
    path = folder / f"board-{ram}-{flash}.toml"
    path.write_text(
        f"""name = "small"
[[processor]]
name = "core"
kind = "cortex-m4f"
clock = "80 MHz"
features = ["fpu", "dsp"]
[[memory]]
name = "ram"
size = {ram}
[[memory]]
name = "flash"
size = {flash}
read_only = true
"""
    )
    return path


def test_the_stack_counts(tmp_path):
    """RAM that holds the arena of whole layers alone: a plan in parts leaves room for the stack."""
    needs_board("cortex-m4")
    whole = completed("ds_cnn_int8", "cortex-m4")
    board = load_board(_board(tmp_path, whole.plan.peak_bytes + 8, 1 << 20))
    assert not fit(whole.plan, board).fits and fit(replace(whole.plan, linked=None), board).fits
    done = find_complete(whole.library.network, PlanRequest(), board, TARGETS["cortex-m4"])
    verdict = fit(done.plan, board)
    assert verdict.fits and verdict.arenas < whole.plan.peak_bytes
    assert verdict.ram_needed == done.plan.peak_bytes + done.plan.stack_bytes
    # Who asks for whole layers gets them, and is told.
    with pytest.raises(Infeasible, match=r"B of arenas and \d+ B of stack: with the stack [\d,]+ B more than"):
        make_library(whole.library.network, board, request=PlanRequest(plain=True, ram=fit_of_plain(whole)))


def fit_of_plain(whole: CompletePlan) -> int:
    return plan(whole.library.network, plain=True).peak_bytes + 8


def test_nothing_fits_beside_the_stack():
    needs_board("cortex-m4")
    network = network_of("ds_cnn_int8")
    least = find_complete(network, PlanRequest(minimise_ram=True, max_slowdown=10.0, max_overhead=10.0), None, CORTEX)
    with pytest.raises(Infeasible, match="of the RAM are left to the stack"):
        find_complete(network, PlanRequest(ram=least.plan.peak_bytes + 8), None, CORTEX)


CORTEX = TARGETS["cortex-m4"]


def test_without_a_compiler_weights_are_exact_and_the_rest_is_named(monkeypatch, tmp_path):
    def none(*_: object) -> None:
        raise EdgewrightError("no compiler for cortex-m4 found")

    monkeypatch.setattr(complete_plan, "toolchain", none)
    done = complete(plan(network_of("ds_cnn_int8")), network_of("ds_cnn_int8"), CORTEX)
    assert done.plan.linked is None and done.not_counted == "no compiler for cortex-m4 found"
    assert done.plan.flash_bytes == packed_bytes(done.plan.packed) == done.library.weight_bytes
    model = samples.write("ds_cnn_int8", tmp_path)
    told = CliRunner().invoke(main, ["plan", str(model), "--board", "nucleo-f446re"])
    assert told.exit_code == 0, told.output
    assert "no compiler for cortex-m4 found" in told.output and "stay free, code and stack apart" in told.output


def test_the_stack_may_lie_in_another_memory():
    made = replace(completed_by_hand(), linked=Linked("gcc", 0, 0, 0, 1 << 10))
    board = load_board("b-u585i-iot02a")  # sram, a small sram4, psram
    memories = {memory.name: memory.usable for memory in board.ram}
    home = made.buffers[0].memory
    assert home == "ram"
    full = moved_to(made, "sram", memories["sram"])
    verdict = fit(full, board)
    assert verdict.fits and verdict.ram == memories["sram"] + memories["sram4"]


def completed_by_hand() -> Plan:
    return plan(network_of("ds_cnn_int8"), explain=False)


def moved_to(made: Plan, memory: str, size: int) -> Plan:
    """The plan in another memory, of which it takes so many bytes."""
    buffers = [replace(buffer, memory=memory) for buffer in made.buffers]
    buffers[0] = replace(buffers[0], offset=size - buffers[0].size)
    return replace(made, buffers=tuple(buffers), peak_bytes=size)


# Files


def test_complete_plans_are_kept_in_files(tmp_path):
    needs_board("cortex-m4")
    done = completed("ds_cnn_int8", "cortex-m4")
    again = plan_from_json(plan_text(done.plan))
    for field in ("target", "options", "selections", "packed", "linked", "peak_bytes"):
        assert getattr(again, field) == getattr(done.plan, field), field
    library, _ = make_library(done.library.network, target="cortex-m4", plan=again)
    assert library.files == done.library.files and library.plan.linked == done.plan.linked


def test_the_json_says_each_part(tmp_path):
    needs_board("cortex-m4")
    model = samples.write("ds_cnn_int8", tmp_path)
    told = CliRunner().invoke(main, ["plan", str(model), "--board", "nucleo-f446re", "--json"])
    data = json.loads(told.output)
    linked = data["linked"]
    assert data["fits"] and data["not_counted"] == ""
    assert data["ram_needed"] == data["peak_bytes"] + linked["stack_bytes"]
    assert data["flash_needed"] == sum(linked[f"{part}_bytes"] for part in ("weights", "code", "runtime"))


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"weights_bytes": 4}, "its packed weights take"),
        ({"stack_bytes": 0}, "bytes of scratch on the stack, but it states a stack of 0"),
    ],
)
def test_promises_about_code_are_judged(figures, message):
    made = emit(completed_by_hand(), CORTEX).plan
    offer = replace(first_selection(made, 0)[1].offer, scratch=64)
    made = changed(made, 0, scratch=None, offer=offer)
    linked = replace(Linked("gcc", packed_bytes(made.packed), 1, 1, 64), **figures)
    found = [fault.message for fault in faults(replace(made, linked=linked))]
    assert found and message in found[0]


def test_elements_of_eight_bytes_lie_where_compilers_place_them():
    """Such as the biases of 16-bit TFLite layers, behind an odd number of words."""
    constants = Constants("net")
    constants.add(np.zeros(5, np.int8), "odd")
    constants.add(np.arange(3, dtype=np.int64), "wide")
    assert constants.packed[1].alignment == 8 and constants.bytes == 8 + 3 * 8


def test_an_array_of_two_versions_is_not_one_array_with_the_values_of_both():
    constants = Constants("net")
    either = constants.add(np.array([1, 2], np.int32), "start of sums", unsigned=np.array([3, 4], np.int32))
    assert constants.add(np.arange(1, 5, dtype=np.int32), "bias") != either
    assert constants.add(np.array([1, 2], np.int32), "again", unsigned=np.array([3, 4], np.int32)) == either


def test_packed_weights_are_those_of_the_model():
    network = network_of("ds_cnn_int8")
    made = emit(completed_by_hand(), CORTEX).plan
    other = replace(made, packed=(Packed("x", 4, 4, "int8:0"), *made.packed[1:]))
    with pytest.raises(InputError, match="other weights"):
        emit(other, CORTEX, network)


# Kernels


def judged(made: Plan, target: str = "cortex-m4") -> list[str]:
    facts = NetworkFacts(network_of("ds_cnn_int8"), TARGETS[target], made.options or Options())
    found = [*faults(made), *(kernel_faults(made, facts) if not list(faults(made)) else ())]
    return [f"{fault.kind.value}: {fault.message}" for fault in found]


def first_selection(made: Plan, stage: int) -> tuple[CallKey, Selection]:
    return next((key, selection) for key, selection in made.selections.items() if key.stage == stage)


def changed(made: Plan, at: int, **what: object) -> Plan:
    """The plan with the first selection of a stage changed."""
    key, one = first_selection(made, at)
    return replace(made, selections={**made.selections, key: replace(one, **what)})


@cache
def selected() -> tuple[Plan, int]:
    """A plan with kernels, and a stage whose kernel has scratch in the arena."""
    made = emit(completed_by_hand(), CORTEX).plan
    at = next(i for i in range(len(made.program.stages)) if first_selection(made, i)[1].scratch)
    return made, at


def test_kernels_as_selected_have_no_faults():
    assert judged(selected()[0]) == []


def test_calls_without_a_kernel_and_kernels_without_a_call():
    made, _ = selected()
    key, one = next((key, one) for key, one in made.selections.items() if one.scratch is None)
    rest = {other: selection for other, selection in made.selections.items() if other != key}
    assert judged(replace(made, selections=rest))[0].startswith("form: no kernel is selected to compute")
    for stray in (replace(key, stage=99), replace(key, part=1), replace(key, layer="nobody")):
        found = judged(replace(made, selections={**made.selections, stray: one}))
        assert found[0].endswith("which does not do that")


def test_a_kernel_that_is_not_there():
    made, at = selected()
    assert "there is no kernel 'magic'" in judged(changed(made, at, kernel="magic"))[0]


def test_a_kernel_of_another_operator_or_target():
    made, at = selected()
    found = judged(changed(made, at, kernel="loops_max_pool"))
    assert found[0].startswith("kernel: ") and "does not compute" in found[0]
    assert any("is not for rv32imc" in fault for fault in judged(made, "rv32imc"))


def test_a_smaller_scratch_is_no_offer():
    made, at = selected()
    offer = first_selection(made, at)[1].offer
    found = judged(changed(made, at, offer=replace(offer, scratch=offer.scratch - 4)))
    assert "does not offer this here" in found[0]


def test_scratch_on_a_stack_that_is_not_for_it(monkeypatch):
    made, at = selected()
    _, one = first_selection(made, at)
    kernel = catalogue.BY_NAME[one.kernel]
    buffers = tuple(buffer for buffer in made.buffers if buffer.name != one.scratch)
    bare = replace(changed(made, at, scratch=None), buffers=buffers)
    assert list(faults(bare)) == []
    for stack, expected in ((one.offer.scratch, 0), (one.offer.scratch - 1, 1)):
        monkeypatch.setitem(catalogue.BY_NAME, one.kernel, replace(kernel, stack=stack))
        found = [fault for fault in judged(bare) if "bytes of scratch on the stack" in fault]
        assert len(found) == expected


def test_scratch_over_a_live_tensor():
    made, at = selected()
    own = first_selection(made, at)[1].scratch
    other = next(b for b in made.live(at) if b.name != own)
    moved = [replace(b, offset=other.offset) if b.name == own else b for b in made.buffers]
    over = replace(made, buffers=tuple(moved))
    over = replace(over, peak_bytes=sum(over.arenas.values()), bound_bytes=0)
    assert next(faults(over)).kind is FaultKind.MEMORY
    assert "which is in use by then" in judged(over)[0]


def test_emission_refuses_kernels_that_do_not_offer_that():
    made, at = selected()
    with pytest.raises(InputError, match="there is no kernel 'magic'"):
        emit(changed(made, at, kernel="magic"), CORTEX, network_of("ds_cnn_int8"))


def test_other_options_select_anew():
    made, _ = selected()
    network = network_of("ds_cnn_int8")
    assert emit(made, CORTEX, network).plan.selections == made.selections
    other = Options(Rounding.TFLM)
    again = emit(changed(made, 0, kernel="magic"), CORTEX, network, options=other).plan
    assert again.options == other and all(selection.kernel != "magic" for selection in again.selections.values())
    elsewhere = emit(made, TARGETS["rv32imc"], network).plan
    assert elsewhere.target == TARGETS["rv32imc"] and judged(elsewhere, "rv32imc") == []
