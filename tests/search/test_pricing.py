"""Prices of candidates: those that plan, compile and map state, for each manner of execution."""

import json
from random import Random

import pytest
from click.testing import CliRunner

from edgewright.cli.main import main
from edgewright.compiling import compile_model
from edgewright.errors import InputError
from edgewright.platform import load_board
from edgewright.platform.board import Power
from edgewright.platform.chip_time import board_instruction_time
from edgewright.search.architecture import CnnArchitecture, PlainBlock, SeparableBlock
from edgewright.search.model import default_ranges, onnx_model
from edgewright.search.pricing import MAPPED, REQUESTS, CandidatePricer, Manner
from edgewright.search.space import SearchSpace, SpaceKind
from edgewright.search.weights import random_weights
from tests.helpers.tools import on_board

BOARD = load_board("nucleo-f446re")
TX2 = load_board("jetson-tx2")


def drawn(kind, seed):
    shape = (48, 1, 6) if kind is SpaceKind.SENSOR else (16, 16, 3)
    space = SearchSpace(kind=kind, blocks=(2, 3), channels=(4, 16), squeeze=(False, True), pools=(1, 2))
    return space.draw(Random(f"{kind.value}{seed}"), shape, 4)


def model_of(architecture, path):
    path.write_bytes(onnx_model(architecture, None, default_ranges(architecture)).SerializeToString())
    return path


def told(*arguments):
    """What a verb prints as JSON."""
    result = CliRunner().invoke(main, [*map(str, arguments), "--json"], catch_exceptions=False)
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("kind", "manner"),
    [
        (SpaceKind.RESIDUAL, Manner.WHOLE),
        (SpaceKind.SEPARABLE, Manner.STREAMED),
        (SpaceKind.INVERTED, Manner.PULLED),
        (SpaceKind.SENSOR, Manner.TILED),
    ],
)
def test_the_command_of_a_price_gives_its_ram(kind, manner, tmp_path):
    architecture, pricer = drawn(kind, 1), CandidatePricer(BOARD, manner)
    price = pricer.price(architecture)
    verb, compile_, *arguments = pricer.command(str(model_of(architecture, tmp_path / "model.onnx"))).split()
    assert (verb, compile_) == ("edgewright", "compile")
    plan = told("plan", *arguments)
    assert price.ram_bytes == plan["peak_bytes"]
    assert price.ram_bytes <= CandidatePricer(BOARD, Manner.WHOLE).price(architecture).ram_bytes
    assert price.seconds == pytest.approx(price.instructions * (board_instruction_time(BOARD) or 0.0))


def test_ram_does_not_depend_on_weights():
    architecture, pricer = drawn(SpaceKind.SEPARABLE, 0), CandidatePricer(BOARD)
    ranges = {name: (low / 3, high * 2) for name, (low, high) in default_ranges(architecture).items()}
    other = pricer.network_price(pricer.network(onnx_model(architecture, random_weights(architecture, 7), ranges)))
    assert other == pricer.price(architecture)


@on_board
def test_compiled_prices_are_those_of_the_linker(tmp_path):
    architecture, pricer = drawn(SpaceKind.SENSOR, 1), CandidatePricer(BOARD)
    model = onnx_model(architecture, None, default_ranges(architecture))
    price = pricer.compiled_price(pricer.network(model))
    compiled = compile_model(
        model_of(architecture, tmp_path / "model.onnx"),
        board=BOARD,
        request=pricer.request,
        quantised_input=True,
        quantised_output=True,
    )
    figures = compiled.figures
    assert price.ram_bytes == figures.ram_predicted == figures.ram_linked == pricer.price(architecture).ram_bytes
    assert price.flash_bytes == figures.flash_weights + figures.flash_code + figures.flash_runtime
    assert (
        price.flash_bytes
        > pricer.price(architecture).flash_bytes
        == architecture.parameters
        + 3 * sum(layer.weight_shape[0] for layer in architecture.layers() if layer.weight_shape)
    )  # biases have four bytes


@pytest.mark.parametrize("kind", SpaceKind)
def test_no_candidate_takes_less_ram_than_the_least_of_the_space(kind):
    space = SearchSpace(kind=kind, blocks=(2, 3), channels=(4, 16))
    shape, pricer = ((48, 1, 6) if kind is SpaceKind.SENSOR else (16, 16, 3)), CandidatePricer(BOARD)
    least = pricer.price(space.least(shape, 4)).ram_bytes
    assert all(least <= pricer.price(space.draw(Random(seed), shape, 4)).ram_bytes for seed in range(3))


# Energy


def test_energy_is_the_power_of_the_board_over_the_time_of_a_frame():
    board = BOARD.model_copy(update={"power": Power(active="0.2 W")})
    price = CandidatePricer(board, needs_energy=True).price(drawn(SpaceKind.SENSOR, 0))
    assert price.energy_j == pytest.approx(0.2 * price.seconds)
    assert CandidatePricer(BOARD).price(drawn(SpaceKind.SENSOR, 0)).energy_j is None


def test_energy_takes_a_board_with_power_data():
    with pytest.raises(InputError, match=r"'nucleo-f446re' has no power data.*\[power\]"):
        CandidatePricer(BOARD, needs_energy=True)


# Linux boards


@pytest.mark.parametrize("manner", [Manner.WHOLE, *MAPPED])
def test_linux_boards_are_priced_as_map_states(manner, tmp_path):
    architecture, pricer = drawn(SpaceKind.RESIDUAL, 2), CandidatePricer(TX2, manner)
    price = pricer.price(architecture)
    command = pricer.command(str(model_of(architecture, tmp_path / "model.onnx"))).split()
    assert command[:2] == ["edgewright", "map"] and "gpu=0" in command
    answer = told(*command[1:])
    assert 1 / price.seconds == pytest.approx(answer["throughput"])
    assert price.energy_j == pytest.approx(answer["energy_j"])


def test_more_cores_are_faster():
    architecture = drawn(SpaceKind.RESIDUAL, 2)
    seconds = {manner: CandidatePricer(TX2, manner).price(architecture).seconds for manner in (Manner.WHOLE, *MAPPED)}
    assert all(seconds[manner] < seconds[Manner.WHOLE] for manner in MAPPED)


def test_microcontrollers_have_no_lanes():
    with pytest.raises(InputError, match="'lanes' takes a board with Linux"):
        CandidatePricer(BOARD, Manner.LANES)
    assert all(CandidatePricer(BOARD, manner).target.name == "cortex-m4" for manner in REQUESTS)


def test_streaming_finds_little_ram_where_layers_are_large():
    architecture = CnnArchitecture((32, 32, 3), (PlainBlock(8, (3, 3)), SeparableBlock(16, (3, 3), (2, 2))), 4)
    prices = {manner: CandidatePricer(BOARD, manner).price(architecture).ram_bytes for manner in REQUESTS}
    assert prices[Manner.PULLED] < prices[Manner.STREAMED] < prices[Manner.WHOLE] / 2
