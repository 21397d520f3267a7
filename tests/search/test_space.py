"""Search spaces: architectures as text, layers, random draws, mutations and recombinations that stay inside."""

import json
from random import Random

import pytest

from edgewright.errors import InputError
from edgewright.platform.schema import parse_toml
from edgewright.search.architecture import (
    CnnArchitecture,
    FinalPooling,
    InvertedBlock,
    PlainBlock,
    ResidualBlock,
    SeparableBlock,
)
from edgewright.search.space import SearchSpace, SpaceKind

ALL = {
    "dense": (0, 2),
    "pools": (1, 2),
    "squeeze": (False, True),
    "pooling": ("mean", "max", "none"),
}


def space_of(kind):
    return SearchSpace(kind=kind, **ALL), ((64, 1, 6) if kind is SpaceKind.SENSOR else (20, 12, 3))


def is_inside(space, architecture):
    """Whether an architecture keeps to the ranges of the space; written apart from how the space draws."""
    sizes = {"kernel": space.kernels, "stride": space.strides, "pool": space.pools}
    assert space.blocks[0] <= len(architecture.blocks) <= space.blocks[1]
    assert type(architecture.blocks[0]) is PlainBlock
    for block in architecture.blocks:
        assert space.channels[0] <= block.channels <= space.channels[1] and block.channels % space.channel_step == 0
        for name, allowed in sizes.items():
            if hasattr(block, name):
                height, width = getattr(block, name)
                assert height in allowed and width == (1 if space.kind is SpaceKind.SENSOR else height)
        if isinstance(block, InvertedBlock):
            assert block.expansion in space.expansions and block.squeeze in space.squeeze
    assert space.dense[0] <= len(architecture.dense) <= space.dense[1]
    assert all(space.units[0] <= units <= space.units[1] for units in architecture.dense)
    assert architecture.pooling in space.pooling
    return True


@pytest.mark.parametrize("kind", SpaceKind)
def test_draws_mutations_and_recombinations_stay_inside(kind):
    space, shape = space_of(kind)
    random = Random(kind.value)
    one, seen = space.draw(random, shape, 4), set()
    for turn in range(150):
        assert is_inside(space, one) and CnnArchitecture.parse(one.text()) == one
        seen.add(one.key)
        mutant = space.mutate(random, one, 0.12)
        assert mutant != one and is_inside(space, mutant)
        other = space.draw(random, shape, 4)
        first, second = space.recombine(random, mutant, other)
        assert is_inside(space, first) and is_inside(space, second)
        together = sorted(map(repr, (*mutant.blocks, *other.blocks)))
        assert sorted(map(repr, (*first.blocks, *second.blocks))) == together
        one = first if turn % 3 else second
    assert len(seen) > 120


def test_the_same_seed_draws_the_same():
    space, shape = space_of(SpaceKind.INVERTED)
    assert [space.draw(Random(5), shape, 3) for _ in range(2)].count(space.draw(Random(5), shape, 3)) == 2


def test_a_small_share_changes_channels_by_a_step_and_a_large_one_by_more():
    space = SearchSpace(kind="residual", channels=(4, 400))
    start = CnnArchitecture((8, 8, 1), tuple(PlainBlock(200, (3, 3)) for _ in range(3)), 2)
    steps = {0.001: 4, 0.12: 24, 0.3: 60}
    for share, step in steps.items():
        changes = set()
        for seed in range(60):
            mutant = space.mutate(Random(seed), start, share)
            if len(mutant.blocks) == 3:
                changes |= {abs(block.channels - 200) for block in mutant.blocks}
        assert changes == {0, step}


@pytest.mark.parametrize("kind", SpaceKind)
def test_the_smallest_architecture_is_inside_and_small(kind):
    space, shape = space_of(kind)
    least = space.least(shape, 4)
    assert is_inside(space, least)
    assert all(least.parameters <= space.draw(Random(seed), shape, 4).parameters for seed in range(50))


@pytest.mark.parametrize("kind", SpaceKind)
def test_samplers_of_optuna_choose_from_the_space(kind):
    optuna = pytest.importorskip("optuna", reason="optuna is part of the extra `search`")
    space, shape = space_of(kind)
    for seed in range(10):
        trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed)).ask()
        assert is_inside(space, space.suggest(trial, shape, 4))


def test_layers_have_shapes_parameters_and_macs_as_counted_by_hand():
    architecture = CnnArchitecture(
        (9, 10, 3),
        (
            PlainBlock(8, (3, 3), (2, 2), (2, 2)),  # 5 × 5, pooled to 2 × 2
            SeparableBlock(4, (3, 3)),
            ResidualBlock(4, (3, 3)),
            ResidualBlock(6, (1, 1), (2, 2)),  # 1 × 1, with a convolution in the shortcut
            InvertedBlock(6, (3, 3), expansion=2, squeeze=True),
        ),
        classes=5,
        dense=(7,),
    )
    shapes = {layer.name: layer.shape for layer in architecture.layers()}
    assert shapes["block0.conv"] == (5, 5, 8) and shapes["block0.pool"] == (2, 2, 8)
    assert shapes["block2.add"] == (2, 2, 4) and "block2.shortcut" not in shapes
    assert shapes["block3.shortcut"] == (1, 1, 6) and shapes["block4.expand"] == (1, 1, 12)
    assert shapes["block4.squeeze"] == (1, 1, 1) and shapes["block4.gate"] == (1, 1, 12)
    stem, separable = 8 * 27, (8 * 9, 4 * 8)
    residual, strided = 2 * 4 * 36, (6 * 4, 6 * 6, 6 * 4)
    inverted, ends = (12 * 6, 12 * 9, 12, 12, 6 * 12), (7 * 6, 5 * 7)
    weights = stem + sum(separable) + residual + sum(strided) + sum(inverted) + sum(ends)
    biases = 8 + (8 + 4) + (4 + 4) + (6 + 6 + 6) + (12 + 12 + 1 + 12 + 6) + (7 + 5)
    assert architecture.parameters == weights + biases
    assert architecture.macs == 25 * stem + 4 * (sum(separable) + residual) + sum(strided) + sum(inverted) + sum(ends)


def test_a_final_pooling_of_none_leaves_all_values_to_the_dense_layer():
    one = CnnArchitecture((8, 1, 2), (PlainBlock(4, (3, 1)),), 3, pooling=FinalPooling.NONE)
    assert one.layers()[-1].weight_shape == (3, 4, 8, 1)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("kind = 'residul'", r'kind is "residul"; expected one of residual, .*did you mean "residual"'),
        ("kind = 'sensor'\nchannels = [40, 8]", r"space.channels is \[40, 8\]; expected the least and the most"),
        ("kind = 'sensor'\nchannels = [9, 11]", "with no multiple of channel_step"),
        ("kind = 'sensor'\nkernels = []", r"space.kernels is \[\]; expected at least one size"),
        ("kind = 'sensor'\nkernel = [3]", "kernel is not a key here"),
    ],
)
def test_a_wrong_table_is_one_sentence(table, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_toml(table, "task.toml", SearchSpace, "a search space")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"blocks": 3}', json.dumps({"input": [0, 1, 1]})])
def test_what_is_no_architecture_is_refused(text):
    with pytest.raises(InputError, match="not an architecture"):
        CnnArchitecture.parse(text)


def test_sizes_out_of_range_are_refused():
    with pytest.raises(InputError, match="sizes from 0 to"):
        CnnArchitecture((8, 8, 1), (PlainBlock(0, (3, 3)),), 2)
