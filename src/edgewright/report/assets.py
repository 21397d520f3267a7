"""The fixed texts of a page: style sheets, script, skeleton. Read from the package, so that a wheel or zip will do."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")
