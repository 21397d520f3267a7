"""Devices that were lost in a run: each is tried again at growing intervals until it can take part."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import EdgewrightError
from .prepared_plan import PreparedPlan
from .remote_device import RemoteDevice, untold

RETRY_S, MOST_RETRY_S = 0.5, 8.0  # between attempts to reach a lost device: doubled each time
MOST_REST_S = 120.0  # before the first attempt, which comes the later, the more often the device was lost


@dataclass
class Recovery:
    """What happened when the set of devices changed."""

    device: str
    why: str
    noticed: float  # by the clock of `time.monotonic`
    plan: str = ""
    frames_again: int = 0
    resumed: float | None = None  # when the next result was there


class LostDevices:
    """Has a thread for each device that is away; `joined` is told of a device that has all plans."""

    def __init__(
        self,
        reach: Callable[[str], RemoteDevice],
        joined: Callable[[RemoteDevice], None],
        say: Callable[[str], None],
        over: threading.Event,
    ) -> None:
        """No device is tried any more once `over` is set."""
        self._reach, self._joined, self._say, self._over = reach, joined, say, over
        self._refusals: dict[str, str] = {}  # what was said of devices that came back and could not take part
        self.losses: Counter[str] = Counter()  # of each device

    def await_return(self, name: str, plans: Sequence[PreparedPlan]) -> None:
        """`plans` may become more meanwhile."""
        thread = threading.Thread(target=self._reach_again, args=(name, plans), name=f"edgewright-retry-{name}")
        thread.daemon = True
        thread.start()

    def _reach_again(self, name: str, plans: Sequence[PreparedPlan]) -> None:
        pause = min(RETRY_S * 4.0 ** min(self.losses[name] - 1, 9), MOST_REST_S)
        while not self._over.wait(pause):
            pause = min(2 * pause, MOST_RETRY_S)
            try:
                remote = self._reach(name)
            except EdgewrightError:
                continue
            try:
                remote.prepare(plans, untold)
            except (EdgewrightError, OSError) as error:
                remote.close()
                if self._refusals.get(name) != str(error):
                    self._refusals[name] = str(error)
                    self._say(f"device '{name}' is back, but cannot take part: {error}")
                continue
            self._joined(remote)
            if self._over.is_set():
                remote.close()
            return
