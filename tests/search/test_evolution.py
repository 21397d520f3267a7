"""The loop of a search with a made-up trainer: determinism, kill and resume, limits, inheritance, the journal."""

import sqlite3
from dataclasses import replace

import pytest

from edgewright.errors import Infeasible, InputError
from edgewright.search.candidates import CandidateOrigin, CnnCandidate, Proposal
from edgewright.search.evolution import PRESETS, select, settings_of
from edgewright.search.front import Measure, dominates
from edgewright.search.journal import Journal, JournalIdentity
from edgewright.search.pricing import Price
from edgewright.search.task import EvolutionEntry, TrainingEntry
from tests.helpers.searching_cases import CLASSES, SHAPE, Killed, MadeUpPricer, MadeUpTrainer, search, task_of

TIGHT = ("[space]", '[limits]\nram = "700"\nflash = "2K"\n[space]')
TAUGHT = ("[space]", "[training]\ndistillation = 0.5\n[space]")


def test_the_same_seed_gives_the_same_search(tmp_path):
    for name in "abc":
        (tmp_path / name).mkdir()
    first = search(tmp_path / "a")
    assert search(tmp_path / "b") == first
    assert search(tmp_path / "c", seed=2)[0] != first[0]


@pytest.mark.parametrize("kills", [(0, 9, 10, 30), (3, 35, 50, 58)])
@pytest.mark.parametrize("change", [("", ""), TIGHT, TAUGHT], ids=["free", "tight", "taught"])
def test_a_search_that_was_killed_goes_on_as_if_nothing_had_happened(tmp_path, kills, change):
    (tmp_path / "whole").mkdir()
    whole = search(tmp_path / "whole", task_of(*change))
    trained = 0
    for slices in kills:
        trainer = MadeUpTrainer(slices - trained)
        try:
            search(tmp_path, task_of(*change), trainer, resume=True)
        except Killed:
            trained += len(trainer.jobs)
            assert trained == slices
        else:
            break
    trainer = MadeUpTrainer()
    assert search(tmp_path, task_of(*change), trainer, resume=True) == whole
    assert search(tmp_path, task_of(*change), MadeUpTrainer(0), resume=True) == whole  # nothing is left to train


def test_the_budget_counts_architectures_and_what_cannot_fit_is_logged_and_not_trained(tmp_path):
    trainer = MadeUpTrainer()
    candidates, front, *_ = search(tmp_path, task_of(*TIGHT), trainer)
    trained = [one for one in candidates if one.is_trained]
    assert len({one.architecture.key for one in trained}) == 24
    refused = [one for one in candidates if one.refusal]
    assert refused and not any(one.is_trained for one in refused)
    assert {one.architecture.key for one in refused}.isdisjoint(job.architecture.key for job in trainer.jobs)
    assert all(one.price.ram_bytes <= 700 and one.price.flash_bytes <= 2048 for one in trained)
    rows = sqlite3.connect(tmp_path / "front.journal").execute("select number, refusal from candidate").fetchall()
    assert rows == [(one.number, one.refusal) for one in candidates]
    assert any("of RAM; the limit is 700 B" in one.refusal for one in refused)
    assert 1 < len(front) <= 6


def test_no_point_of_the_front_is_dominated_and_the_most_accurate_is_there(tmp_path):
    candidates, front, *_ = search(tmp_path)
    measures = (Measure.ACCURACY, Measure.RAM, Measure.INSTRUCTIONS)
    best = {}
    for one in filter(lambda one: one.is_trained, candidates):
        best[one.architecture.key] = max(best.get(one.architecture.key, 0), one.accuracy)
    for point in front:
        assert not any(dominates(other.costs(measures), point.costs(measures)) for other in candidates)
    assert max(one.accuracy for one in front) == max(best.values())


def test_the_better_half_of_the_front_teaches_all_of_it(tmp_path):
    trainer = MadeUpTrainer()
    _, front, *_ = search(tmp_path, task_of(*TAUGHT), trainer)
    last = [job for job in trainer.jobs if job.is_final]
    assert len(last) == 2 * len(front) and trainer.share == 0.5
    accuracies = {}  # after the first turn, by architecture
    for job in last[: len(front)]:
        accuracies[job.architecture.key] = MadeUpTrainer().train(job).accuracy
    best = sorted(accuracies, key=lambda key: -accuracies[key])[: (len(front) + 1) // 2]
    assert {architecture.key for architecture, _ in trainer.teachers} == set(best)
    for job in last[len(front) :]:  # goes on from the first turn
        assert job.ancestors[0][1]["classes.bias"][0] > 3


def test_the_last_training_stays_where_the_metric_falls(tmp_path):
    """The metric before it is the best of many slices, by luck too."""

    class Falling(MadeUpTrainer):
        def train(self, job):
            trained = super().train(job)
            return replace(trained, accuracy=0.1) if job.is_final else trained

    _, front, accuracies, _ = search(tmp_path, task_of(*TAUGHT), Falling())
    assert min(one.accuracy for one in front) > 0.1
    assert set(accuracies.values()) == {0.1}


def test_children_inherit_the_weights_of_their_parents(tmp_path):
    candidates, _, _, _ = search(tmp_path)
    origins = {one.proposal.origin for one in candidates}
    assert {
        CandidateOrigin.DRAWN,
        CandidateOrigin.CONTINUED,
        CandidateOrigin.MUTATED,
        CandidateOrigin.RECOMBINED,
    } <= origins
    for one in candidates:
        assert all(parent < one.number and candidates[parent].is_trained for parent in one.proposal.parents)
        assert len(one.proposal.parents) == {
            CandidateOrigin.DRAWN: 0,
            CandidateOrigin.RECOMBINED: 2,
            CandidateOrigin.CONTINUED: 1,
        }.get(one.proposal.origin, len(one.proposal.parents))
        if one.proposal.origin is CandidateOrigin.CONTINUED:
            assert candidates[one.proposal.parents[0]].architecture == one.architecture


def test_the_search_is_better_than_random_draws_with_the_same_budget(tmp_path):
    for name in ("drawn", "evolved"):
        (tmp_path / name).mkdir()
    task = task_of()
    lone = task.model_copy(update={"evolution": EvolutionEntry(population=24)})
    drawn, evolved = (
        max(one.accuracy for one in search(tmp_path / name, given)[0] if one.is_trained)
        for name, given in (("drawn", lone), ("evolved", task))
    )
    assert evolved > drawn + 0.05


def test_a_space_in_which_nothing_fits_says_the_least_ram(tmp_path):
    with pytest.raises(
        Infeasible, match=r"the smallest of the space needs [\d,]+ B of RAM; the limit is 64 B\. It takes"
    ):
        search(tmp_path, task_of("[space]", '[limits]\nram = "64"\n[space]'))


def test_a_limit_on_energy_is_kept(tmp_path):
    limited = task_of("[space]", '[limits]\nenergy = "1 mJ"\n[space]')
    with pytest.raises(Infeasible, match=r"takes 0\.002 J a frame; the limit is 0\.001 J"):
        search(tmp_path, limited, pricer=MadeUpPricer(0.002))


def test_a_small_space_is_searched_until_it_is_exhausted(tmp_path):
    small = task_of("channels = [4, 32]", "channels = [4, 4]\nblocks = [1, 1]\nstrides = [1]")
    candidates, _, _, _ = search(tmp_path, small)
    assert {one.architecture.blocks[0].kernel for one in candidates} == {(3, 1), (5, 1)}


def test_presets_are_those_of_the_paper():
    """M table 5.3."""
    rows = [
        [getattr(PRESETS[name], field) for name in ("voc", "pamap2", "cifar10")]
        for field in (
            "mutation_rate",
            "mutation_probability",
            "crossover_probability",
            "population",
            "replacement",
            "epochs",
            "learning_rate",
            "batch",
        )
    ]
    assert rows == [
        [0.10, 0.12, 0.12], [0.3, 0.3, 0.3], [0.3, 0.4, 0.3], [60, 50, 100], [0.02, 0.03, 0.02], [1, 1 / 5, 1 / 8],
        [1e-3, 1e-4, 1e-3], [10, 50, 64],
    ]  # fmt: skip
    settings = settings_of(EvolutionEntry(preset="pamap2", population=7), TrainingEntry(batch=32))
    assert (settings.population, settings.batch, settings.epochs) == (7, 32, 0.2)


def test_selection_prefers_undominated_then_lonely_candidates():
    """Six by hand, in accuracy and RAM: a, b, c, d undominated with b and c close together, e and f behind."""
    given = {"a": (0.9, 100), "b": (0.55, 51), "c": (0.5, 50), "d": (0.1, 10), "e": (0.5, 60), "f": (0.4, 70)}
    space = task_of().space
    proposal = Proposal(space.least(SHAPE, CLASSES), CandidateOrigin.DRAWN)
    every = [
        CnnCandidate(number, 0, proposal, Price(ram, 1, 1, 1.0, None), "", accuracy, accuracy)
        for number, (accuracy, ram) in enumerate(given.values())
    ]
    names = dict(zip(range(6), given, strict=True))
    chosen = select(every, (Measure.ACCURACY, Measure.RAM), 5)
    assert "".join(names[one.number] for one in chosen) in ("adbce", "adcbe")


# The journal


def identity(**changes):
    return JournalIdentity(**{"task": "made-up", "digest": "digest", "seed": 1, **changes})


def test_a_journal_of_another_search_is_refused(tmp_path):
    search(tmp_path)
    for changes, words in (({"seed": 2}, "seed: 1, not 2"), ({"digest": "x"}, "data, space or settings differ")):
        with pytest.raises(InputError, match=f"is the journal of another search .*{words}"):
            Journal(tmp_path / "front.journal", identity(**changes), is_resumed=True)


def test_an_interrupted_search_is_not_overwritten_and_a_finished_one_is(tmp_path):
    with pytest.raises(Killed):
        search(tmp_path, trainer=MadeUpTrainer(5))
    with pytest.raises(InputError, match="go on with --resume"):
        search(tmp_path)
    search(tmp_path, resume=True)
    search(tmp_path, seed=3)  # in place of the finished one


def test_files_that_are_no_journals_are_left_alone(tmp_path):
    path = tmp_path / "front.journal"
    path.write_text("my notes" * 200)
    for is_resumed in (False, True):
        with pytest.raises(InputError, match=r"front\.journal"):
            Journal(path, identity(), is_resumed)
    assert path.read_text() == "my notes" * 200


def test_a_full_disk_ends_the_search_with_advice_and_it_goes_on_once_there_is_room(tmp_path, monkeypatch):
    class SmallJournal(Journal):
        def __init__(self, *given):
            super().__init__(*given)
            pages = self._db.execute("pragma page_count").fetchone()[0]
            self._db.execute(f"pragma max_page_count = {pages + 4}")

    monkeypatch.setattr("tests.helpers.searching_cases.Journal", SmallJournal)
    with pytest.raises(InputError, match="full; make room on the disk, then go on with --resume"):
        search(tmp_path)
    monkeypatch.undo()
    (tmp_path / "whole").mkdir()
    assert search(tmp_path, resume=True) == search(tmp_path / "whole")
