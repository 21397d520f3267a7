"""The journal of a search: every candidate in an SQLite file, from which a search that was killed goes on."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from ..errors import InputError
from .architecture import CnnArchitecture
from .candidates import CandidateOrigin, CnnCandidate, Proposal, Trained
from .pricing import Price
from .weights import State, state_shapes

FORMAT = "edgewright-search-2"
_TABLES = """
create table if not exists search (key text primary key, value text not null);
create table if not exists candidate (
  number integer primary key,
  generation integer not null,
  architecture text not null,
  origin text not null,
  parents text not null,
  ram_bytes integer not null,
  flash_bytes integer not null,
  instructions integer not null,
  seconds real not null,
  energy_j real,
  refusal text not null,
  accuracy real,
  macro_f1 real,
  trained_after_s real
);
create table if not exists state (number integer primary key, arrays blob not null);
create table if not exists final (
  number integer not null,
  turn integer not null,
  accuracy real,
  macro_f1 real,
  arrays blob not null,
  primary key (number, turn)
);
"""


@dataclass(frozen=True, slots=True)
class JournalIdentity:
    """Which search a journal belongs to."""

    task: str  # its name
    digest: str  # of all that decides the result, but for the seed
    seed: int

    def entries(self) -> dict[str, str]:
        return {"format": FORMAT, "task": self.task, "seed": str(self.seed), "digest": self.digest}


class Journal:
    """One SQLite file. A method that writes returns once the data are on the disk."""

    def __init__(self, path: Path, identity: JournalIdentity, is_resumed: bool) -> None:
        self.path = path
        if path.exists() and path.stat().st_size and not is_resumed:
            _remove_finished(path)
        with self._said():
            self._db = sqlite3.connect(path)
            self._db.executescript("pragma journal_mode = wal; pragma synchronous = normal;" + _TABLES)
            known = dict(self._db.execute("select key, value from search"))
        self._check(known, identity)
        self.is_new = not known
        with self._writing():
            self._db.executemany("insert or ignore into search values (?, ?)", identity.entries().items())
        row = self._read("select max(trained_after_s) from candidate")[0]
        self._started = time.monotonic() - (row[0] or 0.0)

    def _check(self, known: dict[str, str], identity: JournalIdentity) -> None:
        for key, value in identity.entries().items():
            if known.get(key, value) != value:
                shown = (
                    f"{known[key][:40]}, not {value[:40]}" if key != "digest" else "its data, space or settings differ"
                )
                self.close()
                raise InputError(
                    f"'{self.path}' is the journal of another search ({key}: {shown}); give another -o, or leave "
                    "--resume out"
                )

    # Candidates

    def price(self, candidate: CnnCandidate) -> None:
        """Writes down a candidate that was priced."""
        price = candidate.price
        with self._writing():
            self._db.execute(
                "insert into candidate values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, null, null, null)",
                (
                    candidate.number,
                    candidate.generation,
                    candidate.architecture.text(),
                    candidate.proposal.origin.value,
                    " ".join(map(str, candidate.proposal.parents)),
                    price.ram_bytes,
                    price.flash_bytes,
                    price.instructions,
                    price.seconds,
                    price.energy_j,
                    candidate.refusal,
                ),
            )

    def trained(self, number: int, outcome: Trained) -> None:
        """Writes down what training gave."""
        with self._writing():
            self._db.execute("insert or replace into state values (?, ?)", (number, _packed(outcome.state)))
            self._db.execute(
                "update candidate set accuracy = ?, macro_f1 = ?, trained_after_s = ? where number = ?",
                (outcome.accuracy, outcome.macro_f1, time.monotonic() - self._started, number),
            )

    def candidates(self) -> dict[int, CnnCandidate]:
        """All candidates by number."""
        rows = self._read(
            "select number, generation, architecture, origin, parents, ram_bytes, flash_bytes, instructions, seconds, "
            "energy_j, refusal, accuracy, macro_f1 from candidate order by number"
        )
        return {row[0]: _candidate(row) for row in rows}

    def times(self) -> dict[int, float]:
        """Seconds of searching after which each candidate was trained."""
        return dict(self._read("select number, trained_after_s from candidate where trained_after_s is not null"))

    def state(self, candidate: CnnCandidate) -> State:
        """The weights of a candidate after training; an error if they were dropped."""
        rows = self._read("select arrays from state where number = ?", candidate.number)
        if not rows:
            raise InputError(f"'{self.path}' has lost the weights of candidate {candidate.number}; remove it")
        return self._unpacked(candidate.architecture, rows[0][0])

    def keep_states(self, numbers: Collection[int], end: int) -> None:
        """Drops the weights of all other candidates before number `end`."""
        with self._writing():
            known = [row[0] for row in self._db.execute("select number from state where number < ?", (end,))]
            self._db.executemany("delete from state where number = ?", [(one,) for one in known if one not in numbers])

    # Points of the front, trained to the end

    def finish(self, number: int, turn: int, outcome: Trained) -> None:
        with self._writing():
            self._db.execute(
                "insert or replace into final values (?, ?, ?, ?, ?)",
                (number, turn, outcome.accuracy, outcome.macro_f1, _packed(outcome.state)),
            )

    def finished(self, candidates: Sequence[CnnCandidate], turn: int) -> dict[int, Trained]:
        """What this turn of the last training gave, by number, for those of the candidates that had it."""
        by_number = {one.number: one for one in candidates}
        rows = self._read("select number, accuracy, macro_f1, arrays from final where turn = ?", turn)
        return {
            number: Trained(accuracy, macro_f1, self._unpacked(by_number[number].architecture, arrays))
            for number, accuracy, macro_f1, arrays in rows
            if number in by_number
        }

    def mark_done(self) -> None:
        with self._writing():
            self._db.execute("insert or replace into search values ('done', 'yes')")

    def close(self) -> None:
        self._db.close()

    # The file

    def _read(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        with self._said():
            return self._db.execute(query, values).fetchall()

    def _unpacked(self, architecture: CnnArchitecture, blob: bytes) -> State:
        values, state = np.frombuffer(blob, "<f4").astype(np.float32), {}
        shapes = state_shapes(architecture)
        if len(values) != sum(map(prod, shapes.values())):
            raise InputError(f"'{self.path}' is damaged (weights of another size); remove it")
        at = 0
        for name, shape in shapes.items():
            state[name] = values[at : at + prod(shape)].reshape(shape)
            at += prod(shape)
        return state

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._said(), self._db:
            yield

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Errors of SQLite as a sentence."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            advice = "remove it, or give another -o"
            if "full" in str(error) or "I/O" in str(error):
                advice = "make room on the disk, then go on with --resume"
            elif "locked" in str(error):
                advice = "another search is writing it; wait for it, or give another -o"
            raise InputError(f"cannot use the journal '{self.path}': {error}; {advice}") from None


def _remove_finished(path: Path) -> None:
    """Removes the journal of a finished search; an error for that of an interrupted one, which can go on."""
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            is_done = bool(db.execute("select 1 from search where key = 'done'").fetchall())
        finally:
            db.close()
    except sqlite3.Error as error:
        raise InputError(f"'{path}' is no journal of a search ({error}); remove it, or give another -o") from None
    if not is_done:
        raise InputError(
            f"'{path}' is the journal of an interrupted search; go on with --resume, or remove it to begin again"
        )
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)


def _candidate(row: tuple) -> CnnCandidate:  # type: ignore[type-arg]
    number, generation, architecture, origin, parents, *price, refused, accuracy, macro_f1 = row
    proposal = Proposal(
        CnnArchitecture.parse(architecture), CandidateOrigin(origin), tuple(int(one) for one in parents.split())
    )
    return CnnCandidate(number, generation, proposal, Price(*price), refused, accuracy, macro_f1)


def _packed(state: State) -> bytes:
    """The arrays one after the other, in the order of the architecture's layers."""
    return b"".join(np.ascontiguousarray(array, "<f4").tobytes() for array in state.values())
