"""The loop of a search: propose, price, refuse what exceeds a limit, train the rest, learn. A journal has each step.

A search is a function of its task, its data and its seed. To resume, it runs the same loop again and takes from the
journal what is in it, so that a resumed search equals one that was never interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import Infeasible, InputError
from .architecture import CnnArchitecture, Shape3
from .candidates import CnnCandidate, Proposal, Trained, architectures, candidate_seed, front_of, refusal
from .evolution import Evolution, Proposer, select
from .journal import Journal
from .pricing import CandidatePricer, Price
from .task import Sampler, SearchTask
from .training import Trainer, TrainingJob, run_job
from .workers import Workers

ROUNDS = 20  # in which refused candidates of a generation are replaced
LAST_TURNS = ("final", "distilled")  # of the training of the front's points, each with seeds of its own
STALLED = 5  # generations without a new architecture after which the space counts as exhausted


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search is."""

    trained: int  # distinct architectures
    wanted: int
    refused: int
    best: float  # of the metric
    generation: int


Progress = Callable[[SearchProgress], None]


class ArchitectureSearch:
    """A search in progress."""

    def __init__(
        self,
        task: SearchTask,
        shape: Shape3,
        classes: int,
        journal: Journal,
        workers: Workers,
        pricer: CandidatePricer,
        trainer: Trainer,
        progress: Progress = lambda _: None,
    ) -> None:
        self.task, self.shape, self.classes = task, shape, classes
        self.journal, self.workers, self.pricer, self.trainer = journal, workers, pricer, trainer
        self.progress = progress
        self.candidates: list[CnnCandidate] = []
        self._known = journal.candidates()
        self._generation = 0
        self._prices: dict[str, Price] = {}

    def run(self) -> tuple[CnnCandidate, ...]:
        """All candidates; at least one of them is trained."""
        self._check_least()
        proposer = proposer_of(self.task, self.shape, self.classes, self.journal.path.with_suffix(".optuna"))
        stalled = 0
        while (fresh := self.task.candidates - self._architectures()) > 0 and stalled < STALLED:
            before = self._architectures()
            trained = self._train(self._fitting(proposer, fresh))
            proposer.learn(trained)
            front = front_of(self.candidates, self.task.measures)
            self.journal.keep_states(proposer.ancestors | {one.number for one in front}, len(self.candidates))
            self._generation += 1
            stalled = stalled + 1 if self._architectures() == before else 0
            self._tell()
        return tuple(self.candidates)

    def _check_least(self) -> None:
        """Raises an error if not even the smallest architecture keeps the limits."""
        least = self.task.space.least(self.shape, self.classes)
        price = self.pricer.price(least)
        if why := refusal(price, self.task.limits):
            raise Infeasible(
                f"no candidate fits: the smallest of the space {why}. It takes {price.ram_bytes:,} B of RAM and "
                f"{price.flash_bytes:,} B of flash; raise the limit, or allow fewer channels, larger strides or pools"
            )

    def _architectures(self) -> int:
        return len(architectures(self.candidates))

    # A generation

    def _fitting(self, proposer: Proposer, fresh: int) -> list[CnnCandidate]:
        """A generation's candidates, all within the limits. Others are logged, and replaced by further proposals."""
        fitting: list[CnnCandidate] = []
        wanted, progress = proposer.batch, 1 - fresh / self.task.candidates
        known = architectures(self.candidates)
        for _ in range(ROUNDS):
            left = fresh - len({one.architecture.key for one in fitting} - known)
            priced = self._price(proposer.propose(wanted - len(fitting), max(0, left), progress))
            fitting += [one for one in priced if not one.refusal]
            if refused := [one for one in priced if one.refusal]:
                proposer.refuse(refused)
            if len(fitting) >= wanted or not priced:
                break
        if not fitting:
            fitting = self._price(proposer.fallback(wanted))
        return fitting

    def _price(self, proposals: Sequence[Proposal]) -> list[CnnCandidate]:
        """The proposals with numbers and prices, in their order."""
        first = len(self.candidates)
        missing = {
            proposal.architecture.key: proposal.architecture
            for at, proposal in enumerate(proposals)
            if first + at not in self._known and proposal.architecture.key not in self._prices
        }
        architectures = list(missing.values())
        for index, price in self.workers.map(price_of, self.pricer, architectures):
            self._prices[architectures[index].key] = price
        priced = []
        for number, proposal in enumerate(proposals, first):
            candidate = self._known.get(number)
            if candidate is None:
                price = self._prices[proposal.architecture.key]
                candidate = CnnCandidate(number, self._generation, proposal, price, refusal(price, self.task.limits))
                self.journal.price(candidate)
            elif candidate.architecture != proposal.architecture:
                raise InputError(
                    f"'{self.journal.path}' holds another candidate {number} than this search proposes: it was written "
                    "by another version of edgewright or its libraries. Run without --resume"
                )
            self._prices[proposal.architecture.key] = candidate.price
            priced.append(candidate)
        self.candidates += [replace(one, accuracy=None, macro_f1=None) for one in priced]
        return priced

    def _train(self, fitting: Sequence[CnnCandidate]) -> list[CnnCandidate]:
        """The candidates after training, in their order."""
        waiting = [one for one in fitting if not one.is_trained]
        waiting.sort(key=lambda one: -one.architecture.macs)  # the longest first, so that no worker waits long
        jobs = [self._job(one) for one in waiting]
        done = {one.number: one for one in fitting if one.is_trained}
        for index, outcome in self.workers.map(run_job, self.trainer, jobs):
            candidate = waiting[index]
            self.journal.trained(candidate.number, outcome)
            done[candidate.number] = replace(candidate, accuracy=outcome.accuracy, macro_f1=outcome.macro_f1)
            self._tell(list(done.values()))
        trained = [done[one.number] for one in fitting]
        for one in trained:
            self.candidates[one.number] = one
        return trained

    def _job(self, candidate: CnnCandidate) -> TrainingJob:
        parents = [self.candidates[number] for number in candidate.proposal.parents]
        ancestors = tuple((one.architecture, self.journal.state(one)) for one in parents)
        return TrainingJob(candidate.architecture, ancestors, candidate_seed(self.task.seed, candidate.number))

    def _tell(self, more: Sequence[CnnCandidate] = ()) -> None:
        every = [one for one in (*self.candidates, *more) if one.is_trained]
        self.progress(
            SearchProgress(
                len(architectures(every)),
                self.task.candidates,
                sum(bool(one.refusal) for one in self.candidates),
                max((-one.cost(self.task.measures[0]) for one in every), default=0.0),
                self._generation,
            )
        )

    # The front

    def front(self) -> tuple[CnnCandidate, ...]:
        """The undominated candidates, at most as many as the task asks for; the most accurate is among them."""
        front = front_of(self.candidates, self.task.measures)
        chosen = select(front, self.task.measures, self.task.points)
        return tuple(sorted(chosen, key=lambda one: one.number))

    def finish(self, front: Sequence[CnnCandidate]) -> dict[int, Trained]:
        """The points of the front after their last training, by number.

        With distillation, they train once more, towards the mean outputs of the better half of them.
        """
        begun = {one.number: self._as_trained(one) for one in front}
        finished = self._trained_again(0, self.trainer, front, begun)
        share = self.task.training.distillation
        if not share:
            return finished
        best = sorted(front, key=lambda one: -self._metric(finished[one.number]))[: (len(front) + 1) // 2]
        teachers = [(one.architecture, finished[one.number].state) for one in best]
        return self._trained_again(1, self.trainer.taught_by(teachers, share), front, finished)

    def _trained_again(
        self, turn: int, trainer: Trainer, front: Sequence[CnnCandidate], before: Mapping[int, Trained]
    ) -> dict[int, Trained]:
        """The points after one turn of the last training.

        A turn is kept even where it lowers the metric: that of earlier weights is the best of many slices, by luck too.
        """
        after = self.journal.finished(front, turn)
        waiting = [one for one in front if one.number not in after]
        waiting.sort(key=lambda one: -one.architecture.macs)
        jobs = [
            TrainingJob(
                one.architecture,
                ((one.architecture, before[one.number].state),),
                candidate_seed(self.task.seed, one.number, LAST_TURNS[turn]),
                is_final=True,
            )
            for one in waiting
        ]
        for index, outcome in self.workers.map(run_job, trainer, jobs):
            number = waiting[index].number
            self.journal.finish(number, turn, outcome)
            after[number] = outcome
        return {one.number: after[one.number] for one in front}

    def _as_trained(self, candidate: CnnCandidate) -> Trained:
        assert candidate.accuracy is not None and candidate.macro_f1 is not None
        return Trained(candidate.accuracy, candidate.macro_f1, self.journal.state(candidate))

    def _metric(self, outcome: Trained) -> float:
        return float(getattr(outcome, self.task.metric))


def price_of(pricer: CandidatePricer, architecture: CnnArchitecture) -> Price:
    """Prices; worker processes call this function."""
    return pricer.price(architecture)


def proposer_of(task: SearchTask, shape: Shape3, classes: int, log: Path | None = None) -> Proposer:
    """The evolution, or the sampler of optuna that the task names."""
    if task.sampler is Sampler.EVOLUTION:
        return Evolution(task, shape, classes, task.seed)
    from .samplers import OptunaProposer

    return OptunaProposer(task, shape, classes, log)
