"""Devices as processes, started once for all tests of running clusters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.test_plans import convolutions
from tests.cluster.trials import Trial, trial_of


@pytest.fixture(scope="session")
def session_trial(tmp_path_factory: pytest.TempPathFactory, _lightly_compiled: None) -> Iterator[Trial]:
    """Three devices as processes, and plans for all of them, for the loss of each, and for the gateway alone."""
    network = convolutions(3, 8, 8, size=16, classes=10)
    with trial_of(network, 3, tmp_path_factory.mktemp("cluster")) as trial:
        trial.plans.append(trial.preparation.of_devices(frozenset({trial.gateway})))
        yield trial


@pytest.fixture
def trial(session_trial: Trial) -> Iterator[Trial]:
    """The devices that all tests share. They run again afterwards, whatever a test has done to them."""
    yield session_trial
    session_trial.revive()
