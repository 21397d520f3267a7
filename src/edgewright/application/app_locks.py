"""The C that guards who runs from interrupts, threads and other cores: `c/locks.h`, for one application."""

from __future__ import annotations

from importlib import resources

POSIX = ("#if defined(__linux__) && !defined(_POSIX_C_SOURCE)", "#define _POSIX_C_SOURCE 200809L", "#endif")


def lock_comment(guard: str) -> list[str]:
    """What the header says about locks."""
    return f"{_text(guard).partition('*/')[0]}*/".splitlines()


def lock_lines(guard: str, is_shared: bool) -> list[str]:
    """C of the macros LOCK and UNLOCK; `is_shared` where threads, cores or interrupts may start networks together."""
    return [
        f"#define {guard}_IS_SHARED {int(is_shared)} /* whether networks may start at the same time */",
        *_text(guard).partition("*/")[2].strip().splitlines(),
    ]


def _text(guard: str) -> str:
    text = (resources.files(__package__) / "c" / "locks.h").read_text(encoding="utf-8")
    return text.replace("APP_", f"{guard}_")
