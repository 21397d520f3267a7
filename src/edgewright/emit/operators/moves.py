"""Operators that move elements without computing."""

from __future__ import annotations

from ..site import Site
from ..source import Source


def reshape(site: Site, c: Source) -> bool:
    return False


def transpose(site: Site, c: Source) -> bool:
    return False


def concat(site: Site, c: Source) -> bool:
    return False


def slice_(site: Site, c: Source) -> bool:
    return False


def pad(site: Site, c: Source) -> bool:
    return False


def expand(site: Site, c: Source) -> bool:
    return False


def tile(site: Site, c: Source) -> bool:
    return False


def space_to_depth(site: Site, c: Source) -> bool:
    return False


def depth_to_space(site: Site, c: Source) -> bool:
    return False


def gather(site: Site, c: Source) -> bool:
    return False
