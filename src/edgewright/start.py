"""The entry point of the installed command: Ctrl-C ends it without a traceback at any time."""

from __future__ import annotations

import signal


def run() -> None:
    """Runs the command. While it is loading and after it ends, an interrupt ends the process silently."""
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not a background job of a shell
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
