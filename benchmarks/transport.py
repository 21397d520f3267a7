"""What carries tensors between two devices best: plain TCP, TCP with TLS, ZeroMQ or Zenoh, on loopback.

    python benchmarks/transport.py [--tensors 400] [--messages 300] [--repeats 5] [--transport NAME] [--json FILE]

One process sends, one receives into a slot. Delays are one way, of messages sent one at a time; "beside tensors" are
those of 64 bytes on another channel while tensors are sent without a pause. MB/s and CPU seconds are of tensors of
1 MiB. Transports run in turns; of several repeats, the best value of each figure counts. Copies are argued from the
programming interfaces, not measured.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from edgewright.cluster.running.keys import make_keys
from transport_ends import HOST, RECEIVER, SENDER, TRANSPORTS

PACKAGES = {"zeromq": ("zmq", "pyzmq"), "zenoh": ("zenoh", "eclipse-zenoh")}  # module, package
ENDS = Path(__file__).with_name("transport_ends.py")
KINDS = ("public", "secret")
SMALL, MIDDLE, TENSOR = 64, 64 << 10, 1 << 20
PAUSE_S, WARM_UP = 0.001, 20
GB, MB, WAIT_S = 1e9, 1e6, 120
# Intel's processors can hide their instructions for AES from OpenSSL; without them AES is chosen only if told so.
NO_AES = {"OPENSSL_ia32cap": "~0x200000200000000"}
ENVIRONMENTS = {
    "tcp-tls, AES in software": {**NO_AES, "CPU_INFO": os.devnull},
    "tcp-tls, ChaCha20": {**NO_AES, "CPU_INFO": "cpuinfo"},
}
# Copies of each byte between the sender's array and the receiver's slot, besides the two through the kernel.
TLS_COPIES = 2, "encryption writes a record; decrypted in place, it is copied into the slot"
COPIES = {
    "tcp": (0, "sendall reads the array, recv_into fills the slot"),
    "tcp-tls": TLS_COPIES,
    **dict.fromkeys(ENVIRONMENTS, TLS_COPIES),
    "zeromq": (1, "send reads the array (copy=False); recv_into copies the message into the slot"),
    "zeromq-curve": (5, "a message and its box on either side, then the slot"),
    "zenoh": (5, "bytes of a chunk, ZBytes, batch; to_bytes, slot"),
    "zenoh-tls": (7, "as zenoh, and a record on either side"),
}


class Ends:
    """Both processes of one transport."""

    def __init__(self, name: str, keys: Path) -> None:
        port = str(free_port())
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": keys}
        environment = {**os.environ, **ENVIRONMENTS.get(name, {})}
        self.processes = []
        for role in ("receive", "send"):
            command = [sys.executable, str(ENDS), role, name, port, str(keys)]
            self.processes.append(subprocess.Popen(command, env=environment, **pipes))
            answer = self.processes[-1].stdout.readline()
            if answer != "ready\n":
                self.end()
                raise RuntimeError(f"{name} cannot {role}")

    def phase(self, size: int, count: int, pause: float = 0.0, beside: bool = False) -> tuple[dict, dict]:
        """What the receiver and the sender say about it."""
        order = json.dumps({"size": size, "count": count, "pause": pause, "beside": beside})
        for process in self.processes:
            process.stdin.write(order + "\n")
            process.stdin.flush()
        receiver, sender = (json.loads(process.stdout.readline()) for process in self.processes)
        return receiver, sender

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def free_port() -> int:
    """A port that is free, as the next one most likely is."""
    with socket.create_server((HOST, 0)) as listener:
        return listener.getsockname()[1]


def measure(name: str, keys: Path, tensors: int, messages: int) -> dict[str, float]:
    ends = Ends(name, keys)
    try:
        small = ends.phase(SMALL, messages + WARM_UP, PAUSE_S)[0]["delays_us"][WARM_UP:]
        middle = ends.phase(MIDDLE, messages + WARM_UP, PAUSE_S)[0]["delays_us"][WARM_UP:]
        ends.phase(TENSOR, WARM_UP)
        receiver, sender = ends.phase(TENSOR, tensors)
        beside = ends.phase(TENSOR, tensors, beside=True)[0]["control_us"]
    finally:
        ends.end()
    amount = tensors * TENSOR
    return {
        **delays("small", small),
        **delays("middle", middle),
        **delays("beside", beside),
        "mb_per_s": amount / receiver["seconds"] / MB,
        "sender_cpu_s_per_gb": sender["cpu_seconds"] / amount * GB,
        "receiver_cpu_s_per_gb": receiver["cpu_seconds"] / amount * GB,
        "sender_rss_bytes": sender["rss"],
        "receiver_rss_bytes": receiver["rss"],
        "sender_added_rss_bytes": sender["rss"] - sender["bare_rss"],
        "receiver_added_rss_bytes": receiver["rss"] - receiver["bare_rss"],
    }


def delays(name: str, values: list[float]) -> dict[str, float]:
    return {f"{name}_us": float(np.percentile(values, 50)), f"{name}_99_us": float(np.percentile(values, 99))}


def missing(name: str) -> str:
    """Why it cannot run here, or nothing."""
    if name in ENVIRONMENTS and platform.machine() != "x86_64":
        return f"{name} is skipped: only x86-64 can hide its instructions for AES"
    module, package = PACKAGES.get(name.split("-")[0], ("ssl", ""))
    try:
        import_module(module)
    except ImportError as error:
        return f"{name} is skipped: {error}; pip install {package}"
    return ""


def curve_keys(folder: Path) -> None:
    """Key pairs of both sides, and the folder of public keys that ZeroMQ's authenticator reads."""
    from zmq import curve_keypair
    from zmq.auth import create_certificates

    pairs = {side: curve_keypair() for side in ("client", "server")}
    named = {
        f"{side}_{kind}": key.decode() for side, pair in pairs.items() for kind, key in zip(KINDS, pair, strict=True)
    }
    (folder / "curve.json").write_text(json.dumps(named))
    (folder / "curve").mkdir()
    public, _ = create_certificates(folder / "curve", "client")
    Path(public).write_text(f'metadata\ncurve\n    public-key = "{named["client_public"]}"\n')


def measured(
    names: tuple[str, ...], tensors: int, messages: int, repeats: int
) -> Iterator[tuple[str, dict[str, float]]]:
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder)
        make_keys("benchmark", [SENDER, RECEIVER], SENDER, keys)
        (keys / "cpuinfo").write_text("Features : asimd\n")  # of a processor without AES
        if "zeromq-curve" in names:
            curve_keys(keys)
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for _ in range(repeats):
            for name in names:
                runs[name].append(measure(name, keys, tensors, messages))
    for name in names:
        yield name, {key: best(key)(run[key] for run in runs[name]) for key in runs[name][0]}


def best(key: str) -> Callable[[Iterable[float]], float]:
    """Other processes of the machine only make things slower."""
    return max if key == "mb_per_s" else min


def shown(rows: Mapping[str, Mapping[str, float]]) -> Table:
    table = Table(title="One sender, one receiver, loopback", title_justify="left")
    headings = ("64 B, us", "99 %", "64 KiB, us", "99 %", "beside tensors, us", "99 %", "1 MiB: MB/s")
    for heading in ("", *headings, "CPU s/GB sender", "receiver", "copies", "RSS MB sender", "receiver"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, row in rows.items():
        times = [row[f"{size}{end}_us"] for size in ("small", "middle", "beside") for end in ("", "_99")]
        cpu = [row[f"{side}_cpu_s_per_gb"] for side in ("sender", "receiver")]
        memory = [row[f"{side}_rss_bytes"] / MB for side in ("sender", "receiver")]
        table.add_row(
            name,
            *(f"{value:,.0f}" for value in [*times, row["mb_per_s"]]),
            *(f"{value:.2f}" for value in cpu),
            str(COPIES[name][0]),
            *(f"{value:.1f}" for value in memory),
        )
    return table


@click.command()
@click.option("--tensors", default=400, help="Of 1 MiB, in each run.")
@click.option("--messages", default=300, help="Of each smaller size.")
@click.option("--repeats", default=5)
@click.option("--transport", "names", type=click.Choice(list(TRANSPORTS)), multiple=True, help="These alone.")
@click.option("--json", "output", type=click.Path(path_type=Path))
def main(tensors: int, messages: int, repeats: int, names: tuple[str, ...], output: Path | None) -> None:
    console = Console() if Console().is_terminal else Console(width=170)
    wanted = names or tuple(TRANSPORTS)
    skipped = [why for name in wanted if (why := missing(name))]
    possible = tuple(name for name in wanted if not missing(name))
    rows = dict(measured(possible, tensors, messages, repeats))
    console.print(shown(rows))
    for name in rows:
        console.print(f"copies of {name}: {COPIES[name][1]} (argued)", style="dim", highlight=False)
    for why in skipped:
        console.print(why, style="yellow")
    if output:
        packages = {package: version(package) for name, (_, package) in PACKAGES.items() if not missing(name)}
        data = {"tensors": tensors, "messages": messages, "repeats": repeats, "packages": packages}
        copies = {name: {"copies": count, "argument": why} for name, (count, why) in COPIES.items()}
        output.write_text(json.dumps({**data, "rows": rows, "copies": copies, "skipped": skipped}, indent=1))


if __name__ == "__main__":
    main()
