"""American spellings of options, values and verbs, which mean the same as the British ones that the help shows."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z]+")
_SAME = re.compile(r"(re|over|under|down|up|max|min)?siz(e|ed|er|es|ing)|prize|seize|capsize|error|vector|factor")
# American endings and the British ones, wherever a word has three letters or more before.
_ENDINGS = (
    (re.compile(r"(?<=\w{3})iz(?=(e|ed|er|ers|es|ing|ation|ations)$)"), "is"),
    (re.compile(r"(?<=\w{3})yz(?=(e|ed|er|ers|es|ing)$)"), "ys"),
    (re.compile(r"^(behavi|col|fav|neighb|lab|hon|flav|harb)or(?=(s|ed|ing|hood)?$)"), r"\1our"),
    (re.compile(r"^(cent|met|fib|lit)er(?=s?$)"), r"\1re"),
    (re.compile(r"^(label|model|cancel|travel|signal|level)(?=(ed|ing|er|ers)$)"), r"\1l"),
    (re.compile(r"^(catal|anal|dial)og(?=s?$)"), r"\1ogue"),
    (re.compile(r"^gray(?=(s|scale)?$)"), "grey"),
    (re.compile(r"^(lic|def|off)ense(?=s?$)"), r"\1ence"),
)


def british(token: str) -> str:
    """The token with every word of it in British spelling: `quantized-input` becomes `quantised-input`.

    >>> british("minimize"), british("analyze"), british("size")
    ('minimise', 'analyse', 'size')
    """
    return _WORD.sub(lambda match: _respelled(match[0]), token)


def _respelled(word: str) -> str:
    if _SAME.fullmatch(word):
        return word
    for ending, ours in _ENDINGS:
        word = ending.sub(ours, word)
    return word
