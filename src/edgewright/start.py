"""Where the installed command begins: Ctrl-C ends it without a traceback from the first line to the last."""

from __future__ import annotations

import signal


def run() -> None:
    """The command. While it is loaded, and after its end, an interrupt just ends the process."""
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not in the background of a shell
    if is_heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .cli import main
    from .interrupts import on_interrupt

    try:
        if is_heard:
            signal.signal(signal.SIGINT, on_interrupt)
        main(prog_name="edgewright")
    finally:
        if is_heard:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
