"""Regular expressions that a reply or rewrite is checked by, and the shares that pass, by kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator

from assistant.experiment.measures import counted
from assistant.experiment.task import Summary


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"'{text}' is no regular expression ({error})") from error
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]


def has(text: str, pattern: str) -> bool:
    """Whether the pattern is somewhere in the text, whatever the case."""
    return re.search(pattern, text, re.IGNORECASE) is not None


def by_kind(passed: Iterable[tuple[str, bool]]) -> Summary:
    """The share that passed, "overall" and by the "kinds" in order, with Wilson's 95 % intervals; "" is no kind."""
    results: dict[str, list[bool]] = {}
    for kind, one in passed:
        results.setdefault(kind, []).append(bool(one))
    return {
        "overall": counted([one for of_kind in results.values() for one in of_kind]),
        "kinds": {kind: counted(of_kind) for kind, of_kind in results.items() if kind},
    }
