"""Training in PyTorch: deterministic, better with every slice, and with weights that are inherited. Scores by hand."""

from dataclasses import replace

import numpy as np
import pytest

from edgewright.search.architecture import CnnArchitecture, PlainBlock, SeparableBlock
from edgewright.search.data import LabelledSet, SearchData
from edgewright.search.evolution import EvolutionSettings
from edgewright.search.model import tensor_scales
from edgewright.search.module import load_state, module_of, ranges_of
from edgewright.search.training import TorchTrainer, TrainingJob, channels_first, predictions, scores, start_state
from edgewright.search.weights import fresh_state

PARENT = CnnArchitecture((16, 1, 2), (PlainBlock(8, (3, 1)), SeparableBlock(12, (3, 1), (2, 1))), 3)


def waves(count, seed):
    """Three classes: frequencies of a wave under noise."""
    random = np.random.default_rng(seed)
    y = np.arange(count) % 3
    phase = random.uniform(0, 6.28, (count, 1, 1))
    time = np.arange(16)[None, :, None] * (0.3 + 0.45 * y[:, None, None])
    x = np.sin(time + phase + np.array([0, 1.5])) + random.normal(0, 0.4, (count, 16, 2))
    return LabelledSet(x[:, :, None, :].astype(np.float32), y.astype(np.int64))


def trainer(**changes):
    data = SearchData(("a", "b", "c"), (0, 0), (1, 1), waves(240, 1), waves(90, 2), None, "")
    settings = EvolutionSettings(epochs=1, learning_rate=3e-3, batch=24)
    return replace(TorchTrainer(data, settings, final_epochs=4), **changes)


def test_scores_of_a_table_made_by_hand():
    """Class 0: two hits of three, one false alarm; class 1: one of two; class 2 is never there, and never said."""
    y, predicted = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 0])
    accuracy, macro_f1 = scores(y, predicted, 3)
    assert accuracy == 0.6 and macro_f1 == pytest.approx((2 * 2 / 6 + 2 * 1 / 4) / 2)


def test_blocks_that_were_swapped_in_bring_the_weights_of_the_other_parent():
    other = replace(PARENT, blocks=(PARENT.blocks[0], SeparableBlock(16, (5, 1))))
    child = replace(PARENT, blocks=(PARENT.blocks[0], SeparableBlock(16, (5, 1))), dense=(8,))
    ancestors = ((PARENT, fresh_state(PARENT, 1)), (other, fresh_state(other, 2)))
    state = start_state(TrainingJob(child, ancestors, 3))
    np.testing.assert_array_equal(state["block0.conv.kernel"], ancestors[0][1]["block0.conv.kernel"])
    np.testing.assert_array_equal(state["block1.depthwise.kernel"], ancestors[1][1]["block1.depthwise.kernel"])
    np.testing.assert_array_equal(state["block1.pointwise.kernel"], ancestors[1][1]["block1.pointwise.kernel"])
    np.testing.assert_array_equal(state["dense0.kernel"], fresh_state(child, 3)["dense0.kernel"])


def test_slices_of_training_add_up_and_repeat_exactly():
    pytest.importorskip("torch", reason="PyTorch is an extra")
    first = trainer().train(TrainingJob(PARENT, (), 5))
    again = trainer().train(TrainingJob(PARENT, (), 5))
    assert first.accuracy == again.accuracy
    assert all((first.state[name] == again.state[name]).all() for name in first.state)
    last = first
    for seed in range(4):
        last = trainer().train(TrainingJob(PARENT, ((PARENT, last.state),), seed))
    final = trainer().train(TrainingJob(PARENT, ((PARENT, last.state),), 9, is_final=True))
    assert first.accuracy < last.accuracy and final.accuracy > 0.8 and final.macro_f1 > 0.8
    untouched = trainer(final_epochs=0).train(TrainingJob(PARENT, ((PARENT, final.state),), 9, is_final=True))
    assert untouched.accuracy == final.accuracy


def test_networks_learn_from_teachers_in_place_of_labels():
    """Where labels are wrong, a network learns from teachers alone."""
    pytest.importorskip("torch", reason="PyTorch is an extra")
    own = trainer(final_epochs=30)
    teacher = own.train(TrainingJob(PARENT, (), 5, is_final=True))
    wrong = replace(own.data, train=replace(own.data.train, y=np.roll(own.data.train.y, 1)))
    taught = replace(own, data=wrong).taught_by([(PARENT, teacher.state)], 1.0)
    first, again = (taught.train(TrainingJob(PARENT, (), 6, is_final=True)) for _ in range(2))
    assert teacher.accuracy > 0.7 and first.accuracy > 0.7 and first.accuracy == again.accuracy
    assert replace(own, data=wrong).train(TrainingJob(PARENT, (), 6, is_final=True)).accuracy < 0.3


def test_the_last_training_ends_in_int8(monkeypatch):
    """With three levels in place of 255, weights that were not trained for it lose most of what they learned."""
    torch = pytest.importorskip("torch", reason="PyTorch is an extra")

    def in_three_levels(_torch, kernel):
        scale = kernel.detach().abs().flatten(1).amax(1)
        return torch.fake_quantize_per_channel_affine(
            kernel, scale, torch.zeros(len(scale), dtype=torch.int32), 0, -1, 1
        )

    monkeypatch.setattr("edgewright.search.module.fake_weights", in_three_levels)
    reached = []
    for share in (0.0, 0.5):
        monkeypatch.setattr("edgewright.search.training.QUANTISED", share)
        last = trainer(final_epochs=30).train(TrainingJob(PARENT, (), 5, is_final=True))
        module = module_of(PARENT)
        load_state(module, last.state)
        data = trainer().data
        module.scales = tensor_scales(PARENT, ranges_of(module, [channels_first(data.calibration)]))
        reached.append((predictions(module, data.validation.x) == data.validation.y).mean())
    assert reached[1] > reached[0] + 0.05


def test_noise_and_balanced_classes_change_the_result():
    pytest.importorskip("torch", reason="PyTorch is an extra")
    plain, noisy, balanced = (
        trainer(**changes).train(TrainingJob(PARENT, (), 5)).state["classes.kernel"]
        for changes in ({}, {"noise": 0.1}, {"is_balanced": True})
    )
    assert (plain != noisy).any()
    assert (plain == balanced).all()  # all classes are as frequent
