"""`python -m edgewright.cluster.node KEYS/`: a node, without anything that plans need."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from ...errors import EdgewrightError
from .addresses import PORT
from .credentials import load_credentials
from .heap import use_one_heap
from .server import ClusterNode

STORE = "~/.cache/edgewright/node"


def serve(keys: Path, listen: str, store: Path | None, until_input_ends: bool = False) -> None:
    """Serves until a signal ends it; or until standard input ends, as it does with the process that writes to it."""
    use_one_heap()
    credentials = load_credentials(keys)
    folder = store or Path(STORE).expanduser() / credentials.name
    over = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: over.set())
    if until_input_ends:
        threading.Thread(target=_await_end, args=(over,), name="edgewright-input", daemon=True).start()
    node = ClusterNode(credentials, listen, folder, lambda text: print(text, file=sys.stderr, flush=True))
    print(f"node '{credentials.name}' listens at port {node.port}", flush=True)
    over.wait()
    node.close()


def _await_end(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m edgewright.cluster.node", description="A device of a cluster.")
    parser.add_argument("keys", type=Path, help="the folder that `edgewright cluster keys` wrote for this device")
    parser.add_argument("--listen", default=f"0.0.0.0:{PORT}", help="host and port (default: %(default)s)")
    parser.add_argument("--store", type=Path, help=f"the folder for files (default: {STORE}/NAME)")
    parser.add_argument("--until-input-ends", action="store_true", help="end when standard input does")
    given = parser.parse_args()
    try:
        serve(given.keys, given.listen, given.store, given.until_input_ends)
    except EdgewrightError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
