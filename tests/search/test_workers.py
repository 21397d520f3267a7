"""Workers: processes of this machine, a Dask cluster that loses one, and samplers of optuna with the same loop."""

import os
import signal

import pytest

from edgewright.errors import InputError
from edgewright.search.samplers import OptunaProposer
from edgewright.search.workers import DaskWorkers, LocalWorkers
from tests.helpers.searching_cases import CLASSES, SHAPE, Killed, MadeUpTrainer, search, task_of


def multiplied(factor, item):
    return factor * item, os.getpid()


def test_processes_of_this_machine_give_what_one_process_gives():
    alone = sorted(LocalWorkers(1).map(multiplied, 3, range(5)))
    shared = sorted(LocalWorkers(2).map(multiplied, 3, range(5)))
    assert [(index, value) for index, (value, _) in alone] == [(index, 3 * index) for index in range(5)]
    assert [(index, value) for index, (value, _) in shared] == [(index, value) for index, (value, _) in alone]
    assert os.getpid() not in {process for _, (_, process) in shared}


def killing(number, item):
    if item == number:
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_a_process_that_is_killed_ends_the_search_with_advice():
    with pytest.raises(InputError, match=r"a worker process was killed.* --resume"):
        list(LocalWorkers(2).map(killing, 1, range(4)))


def test_an_address_without_a_scheduler_is_refused(monkeypatch):
    pytest.importorskip("distributed", reason="Dask is an extra")
    monkeypatch.setattr("edgewright.search.workers.CONNECT_S", 1)
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        DaskWorkers("tcp://127.0.0.1:9")


class DyingTrainer(MadeUpTrainer):
    """Kills the process of the worker that trains first, once."""

    def __init__(self, mark):
        super().__init__()
        self.mark = mark

    def train(self, job):
        if not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().train(job)


@pytest.mark.slow
def test_a_dask_cluster_of_two_of_which_one_is_killed_gives_the_same_search(tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is an extra")
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        workers = DaskWorkers(cluster.scheduler_address)
        try:
            trainer = DyingTrainer(tmp_path / "mark")
            there = search(tmp_path / "there", trainer=trainer, workers=workers)
        finally:
            workers.close()
    assert (tmp_path / "mark").exists() and not trainer.jobs
    assert there == search(tmp_path / "here")


@pytest.mark.parametrize("sampler", ["tpe", "nsga2", "random"])
def test_samplers_of_optuna_search_the_same_space_and_go_on_after_a_kill(tmp_path, sampler):
    optuna = pytest.importorskip("optuna", reason="optuna is an extra")
    task = task_of("[space]", '[limits]\nram = "800"\n[space]').model_copy(update={"candidates": 10})
    task = task.model_validate({**task.model_dump(by_alias=True), "sampler": sampler})
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole = search(tmp_path / "whole", task)
    with pytest.raises(Killed):
        search(tmp_path / "killed", task, MadeUpTrainer(5))
    assert search(tmp_path / "killed", task, resume=True) == whole
    assert any(one.refusal for one in whole[0]) and all(one.price.ram_bytes <= 800 for one in whole[1])
    storage = optuna.storages.journal.JournalFileBackend(str(tmp_path / "whole" / "front.optuna"))
    study = optuna.load_study(study_name="made-up", storage=optuna.storages.JournalStorage(storage))
    told = [trial for trial in study.trials if trial.values]
    assert len(told) == len(whole[0])
    assert sum(trial.user_attrs["excess"] > 0 for trial in told) == sum(bool(one.refusal) for one in whole[0])


def test_samplers_inherit_from_the_candidate_with_most_layers_in_common(tmp_path):
    pytest.importorskip("optuna", reason="optuna is an extra")
    candidates, *_ = search(tmp_path)
    proposer = OptunaProposer(task_of("points = 6", 'points = 6\nsampler = "random"'), SHAPE, CLASSES)
    trained = [one for one in candidates if one.is_trained]
    proposer.learn(trained)
    assert trained[3].number in proposer.ancestors
    nearest = {one.number: proposer._nearest(one.architecture)[0] for one in trained}
    for one in trained:
        assert candidates[nearest[one.number]].price.flash_bytes == one.price.flash_bytes  # strides may differ
