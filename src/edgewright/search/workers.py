"""Workers that price and train: processes of this machine (joblib) or a Dask cluster, with the same results."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from ..errors import InputError

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

CONNECT_S = 10
RETRIES = 3  # of work whose Dask worker was lost


class Workers(Protocol):
    """Applies a function to many items, in parallel if it can."""

    def map(
        self, function: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Each item's index and result, as they become ready."""

    def close(self) -> None: ...


class LocalWorkers:
    """Processes of this machine with one thread each; a single worker is this process itself."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or len(os.sched_getaffinity(0))

    def map(
        self, function: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        if self.count == 1 or len(items) < 2:
            for index, item in enumerate(items):
                yield index, function(shared, item)
            return
        from joblib import Parallel, delayed, parallel_config
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        with parallel_config(backend="loky", inner_max_num_threads=1), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A worker stopped")  # loky replaces processes that have grown
            run = Parallel(n_jobs=self.count, return_as="generator_unordered", batch_size=1)
            try:
                yield from run(delayed(_indexed)(function, shared, index, item) for index, item in enumerate(items))
            except TerminatedWorkerError:
                raise InputError(
                    "a worker process was killed, perhaps for lack of memory; go on with --resume and fewer --workers"
                ) from None

    def close(self) -> None:
        """Nothing: joblib ends idle processes."""


def _indexed(function: Callable[[Shared, Item], Result], shared: Shared, index: int, item: Item) -> tuple[int, Result]:
    return index, function(shared, item)


class DaskWorkers:
    """The workers of a Dask scheduler. Work of a worker that is lost runs again on another."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise InputError("--on takes Dask, which is missing: pip install 'edgewright[dask]'") from error
        try:
            self._client: Any = Client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(
                f"no Dask scheduler answers at '{address}' ({_line(error)}); start one with `dask scheduler`, and give "
                "the address that it prints"
            ) from None
        if not self._client.scheduler_info().get("workers"):
            self.close()
            raise InputError(
                f"the Dask scheduler at '{address}' has no workers; start some with `dask worker {address}`"
            )

    def map(
        self, function: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        from distributed import KilledWorker, as_completed
        from distributed.client import FutureCancelledError

        missing = dict(enumerate(items))
        for attempt in range(RETRIES + 1):
            data = self._client.scatter(shared, broadcast=True, hash=False)
            futures = {self._client.submit(function, data, item, pure=False): index for index, item in missing.items()}
            for future in as_completed(list(futures), loop=self._client.loop):
                index = futures[future]
                try:
                    result = future.result()
                except (FutureCancelledError, KilledWorker) as error:  # its data went with a worker
                    if attempt == RETRIES:
                        raise InputError(
                            f"Dask workers are lost again and again ({_line(error)}); go on with --resume"
                        ) from None
                    continue
                del missing[index]
                yield index, result
            if not missing:
                return

    def close(self) -> None:
        self._client.close()


def _line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
