"""Damages TFLite files at random and reads them: only EdgewrightError may come out, soon and in little memory.

    python tests/fuzz_tflite.py --minutes 20 --corpus FOLDER

Starts from the .tflite files of the corpus, if one is given, and from the models of tflite_cases.py. Inputs that break
the reader are kept in a folder that is named at the end. Not collected by pytest: it runs for as long as it is told.
"""

from __future__ import annotations

import argparse
import faulthandler
import resource
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from edgewright.errors import EdgewrightError
from edgewright.network.tflite import read_tflite
from edgewright.network.tflite.file import parse
from tflite_cases import CASES

_SLOW_SECONDS = 5.0
_MOST_BYTES = 3 << 30  # of address space: a read that wants more raises MemoryError, which counts as broken
_NUMBERS = (
    0,
    1,
    2,
    3,
    4,
    8,
    127,
    128,
    255,
    256,
    65535,
    65536,
    1 << 20,
    1 << 28,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
)


def metadata(content: bytes) -> np.ndarray:
    """Offsets of the bytes that are not values of constants: where damage reaches the reader."""
    is_data = np.zeros(len(content), bool)
    base = np.frombuffer(content, np.uint8).__array_interface__["data"][0]
    for tensor in parse(content, "seed").tensors:
        if tensor.data is not None and tensor.data.size:
            start = tensor.data.__array_interface__["data"][0] - base
            if 0 <= start < len(content):
                is_data[start : start + tensor.data.nbytes] = True
    return np.flatnonzero(~is_data)


def damaged(rng: np.random.Generator, content: bytes, places: np.ndarray, other: bytes) -> bytes:
    result = bytearray(content)

    def place() -> int:
        return int(rng.choice(places)) if rng.random() < 0.9 else int(rng.integers(len(result)))

    for _ in range(int(rng.integers(1, 4))):
        at = place() % max(1, len(result))
        match int(rng.integers(8)):
            case 0:
                result[at] ^= 1 << int(rng.integers(8))
            case 1:
                result[at] = int(rng.integers(256))
            case 2 | 3:  # a field: flatbuffers align them
                at -= at % 4
                value = int(rng.choice(np.array(_NUMBERS, np.uint64)))
                if rng.random() < 0.3:
                    value = int(rng.integers(len(result)))
                result[at : at + 4] = struct.pack("<I", value)
            case 4:
                at -= at % 2
                result[at : at + 2] = struct.pack("<H", int(rng.integers(1 << 16)))
            case 5:
                result[at : at + int(rng.integers(1, 64))] = b""
            case 6:  # a piece of another file, or of this one
                start = int(rng.integers(len(other)))
                piece = other[start : start + int(rng.integers(1, 256))]
                result[at : at + len(piece)] = piece
            case 7 if rng.random() < 0.3:
                del result[at:]
        if len(result) < 8:
            break
    return bytes(result)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", type=Path, default=None)
    arguments = parser.parse_args()
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    rng = np.random.default_rng(arguments.seed)
    files = sorted(arguments.corpus.glob("**/*.tflite")) if arguments.corpus else []
    seeds = [path.read_bytes() for path in files]
    seeds += [make(rng, dtype) for (_, dtype), make in CASES.items()]
    places = [metadata(content) for content in seeds]
    kept = Path(tempfile.mkdtemp(prefix="fuzz-tflite-"))
    outcomes: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    slowest = 0.0
    end = time.monotonic() + 60 * arguments.minutes
    while time.monotonic() < end:
        i, j = (int(k) for k in rng.integers(len(seeds), size=2))
        content = damaged(rng, seeds[i], places[i], seeds[j])
        faulthandler.dump_traceback_later(60, exit=True)
        start = time.process_time()  # others may hold the processor
        try:
            read_tflite(content)
            outcomes["read"] += 1
        except EdgewrightError as error:
            outcomes[type(error).__name__] += 1
        except BaseException:
            trace = traceback.format_exc()
            where = trace.strip().splitlines()[-1] + " @ " + trace.strip().splitlines()[-3].strip()
            if where not in broken:
                (kept / f"{len(broken):03}.tflite").write_bytes(content)
                print(trace, file=sys.stderr)
            broken[where] += 1
        taken = time.process_time() - start
        if taken > _SLOW_SECONDS:
            (kept / f"slow-{taken:.0f}s-{outcomes.total()}.tflite").write_bytes(content)
            broken["slow"] += 1
        slowest = max(slowest, taken)
        faulthandler.cancel_dump_traceback_later()
    print(f"{outcomes.total()} files: {dict(outcomes)}; slowest {slowest:.2f} s")
    print(f"broken: {dict(broken)}; kept in {kept}" if broken else "none broke the reader")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
