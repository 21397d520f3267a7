"""This machine as far as it affects native code and times: architecture, instructions, kinds of cores."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_CPUINFO = Path("/proc/cpuinfo")
_CORES = Path("/sys/devices/system/cpu")
# Arm cores by implementer and part number (MIDR_EL1).
_ARM_PARTS = {
    (0x41, 0xD03): "cortex-a53",
    (0x41, 0xD04): "cortex-a35",
    (0x41, 0xD05): "cortex-a55",
    (0x41, 0xD07): "cortex-a57",
    (0x41, 0xD08): "cortex-a72",
    (0x41, 0xD09): "cortex-a73",
    (0x41, 0xD0A): "cortex-a75",
    (0x41, 0xD0B): "cortex-a76",
    (0x41, 0xD0C): "neoverse-n1",
    (0x41, 0xD40): "neoverse-v1",
    (0x41, 0xD41): "cortex-a78",
    (0x41, 0xD42): "cortex-a78ae",
    (0x41, 0xD49): "neoverse-n2",
    (0x41, 0xD4F): "neoverse-v2",
    (0x4E, 0x003): "denver2",
}


@dataclass(frozen=True, slots=True)
class CoreKind:
    """Equal cores: their kind as the system reports it, their numbers, and the highest clock if known."""

    kind: str
    cores: tuple[int, ...]
    clock: int | None = None  # hertz


def architecture() -> str:
    """The usual name of the instruction set."""
    return {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())


@cache
def processor_features() -> tuple[str, ...]:
    """The instruction set extensions that all cores have, by Linux's names; none on other systems."""
    listed = [
        set(value.split()) for entry in _cpuinfo() for key, value in entry.items() if key in ("Features", "flags")
    ]
    return tuple(sorted(set.intersection(*listed))) if listed else ()


def usable_cores() -> tuple[int, ...]:
    """The cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def pin(cores: tuple[int, ...]) -> bool:
    """Pins the calling thread to these cores; False if the system cannot."""
    allowed = set(cores) & set(usable_cores())
    if not allowed or not hasattr(os, "sched_setaffinity"):
        return False
    with suppress(OSError):
        os.sched_setaffinity(0, allowed)  # 0: this thread
        return True
    return False


def on_cores(cores: tuple[int, ...], what: Callable[[], T]) -> T:
    """The result of a function that a thread computes on these cores."""
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        pin(cores)
        try:
            results.append(what())
        except BaseException as error:  # re-raised in the calling thread
            errors.append(error)

    thread = threading.Thread(target=work, name="edgewright-profile", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def core_kinds() -> tuple[CoreKind, ...]:
    """The cores that this process may use, fastest kind first."""
    entries = {int(entry["processor"]): entry for entry in _cpuinfo() if entry.get("processor", "").isdigit()}
    groups: dict[tuple[str, int | None], list[int]] = {}
    for core in usable_cores():
        groups.setdefault((_kind(entries.get(core, {})), _clock(core)), []).append(core)
    kinds = [CoreKind(kind, tuple(cores), clock) for (kind, clock), cores in groups.items()]
    return tuple(sorted(kinds, key=lambda kind: (-(kind.clock or 0), kind.cores)))


def processor_model() -> str:
    """The processor's name according to the system."""
    for entry in _cpuinfo():
        if name := entry.get("model name"):
            return name
    kinds = dict.fromkeys(kind.kind for kind in core_kinds())
    return " + ".join(kinds) or platform.processor() or platform.machine()


def _kind(entry: dict[str, str]) -> str:
    if name := entry.get("model name"):
        return name
    with suppress(KeyError, ValueError):
        part = int(entry["CPU implementer"], 16), int(entry["CPU part"], 16)
        return _ARM_PARTS.get(part, f"arm-{part[0]:02x}-{part[1]:03x}")
    return architecture()


def _clock(core: int) -> int | None:
    """The highest clock of a core in hertz."""
    with suppress(OSError, ValueError):
        return int((_CORES / f"cpu{core}" / "cpufreq" / "cpuinfo_max_freq").read_text()) * 1000
    return None


@cache
def _cpuinfo() -> tuple[dict[str, str], ...]:
    """The blocks of /proc/cpuinfo; empty if the file is missing."""
    try:
        text = _CPUINFO.read_text()
    except OSError:
        return ()
    blocks = (block.splitlines() for block in text.split("\n\n"))
    pairs = ([line.partition(":") for line in block if ":" in line] for block in blocks)
    return tuple({key.strip(): value.strip() for key, _, value in block} for block in pairs)


def resident_bytes() -> int:
    """Resident memory of this process; 0 if the system does not report it."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
