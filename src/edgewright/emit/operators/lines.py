"""Along an axis: softmax, normalisations, reductions, arg-max."""

from __future__ import annotations

from ..site import Site
from ..source import Source


def softmax(site: Site, c: Source) -> bool:
    return False


def log_softmax(site: Site, c: Source) -> bool:
    return False


def l2_normalize(site: Site, c: Source) -> bool:
    return False


def lrn(site: Site, c: Source) -> bool:
    return False


def reduce(site: Site, c: Source) -> bool:
    return False


def arg_max(site: Site, c: Source) -> bool:
    return False
