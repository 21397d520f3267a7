"""Damages dataflow graphs at random and reads them: only EdgewrightError may come out, soon and in little memory.

    python tests/dataflow/fuzz.py --minutes 10 --corpus FOLDER

Starts from the SDF3 files of the corpus, if one is given, and from the texts below. Inputs that break a reader are kept
in a folder that is named at the end. Not collected by pytest: it runs for as long as it is told.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from edgewright.dataflow.formats.dot import dot
from edgewright.dataflow.formats.reader import parse_graph
from edgewright.dataflow.formats.sdf3_text import sdf3
from edgewright.dataflow.formats.text import to_json
from edgewright.dataflow.graph import Actor, Channel, Graph, Rates
from edgewright.errors import EdgewrightError

_SLOW_SECONDS = 5.0
_MOST_BYTES = 3 << 30  # of address space: a read that wants more raises MemoryError, which counts as broken
_VALUES = (
    *(
        "",
        "0",
        "-1",
        "1",
        "1,1",
        "3*1",
        "999999999*1",
        "1;3",
        ";",
        "*",
        "1;;2",
        "0*1",
        "1e99",
        "1/0",
        "1/3",
        "0.5",
    ),
    *(
        "9" * 30,
        "9" * 5000,
        "NaN",
        "inf",
        "²",
        "٣",
        "a",
        "b",
        "in",
        "out",
        "&#0;",
        "&lt;",
        "&x;",
        "\ud7ff",
        "true",
    ),
    *("null", "[]", "{}", "[1, 2]", '"3*1"', "1e400", "-0.0", '"\\ud800"', "UTF-16", "idna", "utf-7", "undefined"),
)
_PIECES = (
    *(b"<!DOCTYPE x>", b'<!DOCTYPE x [<!ENTITY y "z">]>', b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<?x ?>", b"\0"),
    *(b"<actor/>", b'<actor name="q"/>', b"<a>" * 70, b"</a>", b"<sdf/>", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3"),
    *(b"{", b"}", b"[" * 2000, b"]", b",", b":", b'"', b'"note": 1,', b'"phases": 0,', b"1e9,", b"{}, "),
)


def seeds() -> list[bytes]:
    """Small graphs that have all there is in either format."""
    graph = Graph(
        "seed",
        (
            Actor("a", 3, (1, 1, 2), note="first"),
            Actor("b", 2, (1, 2, 3), 1),
            Actor("c", 4),
        ),
        (
            Channel("ab", "a", "b", Rates((1, 1, 1)), Rates((3, 0), (0,)), 2, 4, "note"),
            Channel("bb", "b", "b", Rates((1, 1), (1,)), Rates((1, 1), (1,)), 1),
        ),
    )
    return [sdf3(graph).encode(), json.dumps(to_json(graph), indent=1).encode()]


def damaged(random: Random, data: bytes, other: bytes) -> bytes:
    """The bytes with one to three things wrong; half the time with values alone, which reach deepest."""
    kinds = random.choice((range(7), (6,)))
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(data) + 1)
        match random.choice(kinds):
            case 0:
                data = data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at]
            case 2:
                data = data[:at] + data[at + random.randint(1, 40) :]
            case 3:
                data = data[:at] + random.choice(_PIECES) + data[at:]
            case 4:
                start = random.randrange(len(other) + 1)
                data = data[:at] + other[start : start + random.randint(1, 200)] + data[at:]
            case 5:
                stop = at + random.randint(1, 200)
                data = data[:stop] + data[at:stop] + data[stop:]
            case _:
                data = _with_value(random, data, at)
    return data


def _with_value(random: Random, data: bytes, at: int) -> bytes:
    """The bytes with another text between the next two quotes, where values mostly are."""
    quote = b"'" if data.find(b'"', at) < 0 else b'"'
    start = data.find(quote, at) + 1
    stop = data.find(quote, start)
    if not start or stop < 0:
        return data
    return data[:start] + random.choice(_VALUES).encode() + data[stop:]


def survives(data: bytes) -> str:
    """What came of reading, and of writing what was read; anything but our errors goes through."""
    try:
        graph = parse_graph(data, "damaged")
        dot(graph).encode()
        json.dumps(to_json(graph)).encode()
        sdf3(graph).encode()
    except EdgewrightError as error:
        return type(error).__name__ if len(str(error)) < 2000 else "a message nobody reads to the end"
    return "read"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    files = [file.read_bytes() for file in sorted(options.corpus.rglob("*.xml"))] if options.corpus else []
    starts, random, outcomes = seeds() * 3 + files, Random(options.seed), Counter[str]()
    kept = Path(tempfile.mkdtemp(prefix="fuzz_dataflow_"))
    end = time.monotonic() + 60 * options.minutes
    while time.monotonic() < end:
        data = damaged(random, random.choice(starts), random.choice(starts))
        began = time.monotonic()
        try:
            outcome = survives(data)
        except Exception:
            outcome = traceback.format_exc(limit=-2).strip().splitlines()[-1][:100]
            (kept / f"{sum(outcomes.values())}.bin").write_bytes(data)
        if time.monotonic() - began > _SLOW_SECONDS:
            outcome = "slow"
            (kept / f"slow{sum(outcomes.values())}.bin").write_bytes(data)
        outcomes[outcome] += 1
    print(dict(outcomes.most_common()), f"broken inputs are in {kept}")
    sys.exit(bool(outcomes.keys() - {"read", "ModelError", "InputError"}))


if __name__ == "__main__":
    main()
