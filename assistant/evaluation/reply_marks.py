"""Regular expressions that a reply or rewrite is checked by, and the shares that pass, by kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator

from assistant.experiment.measures import share_passed
from assistant.experiment.task import Summary


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"'{text}' is no regular expression ({error})") from error
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]


def has_match(text: str, pattern: str) -> bool:
    """Whether the pattern is somewhere in the text, whatever the case."""
    return re.search(pattern, text, re.IGNORECASE) is not None


def shares_by_kind(passed: Iterable[tuple[str, bool]]) -> Summary:
    """The share that passed, "overall" and by the "kinds" in order, with Wilson's 95 % intervals; "" is no kind."""
    results: dict[str, list[bool]] = {}
    for kind, is_passed in passed:
        results.setdefault(kind, []).append(bool(is_passed))
    return {
        "overall": share_passed([is_passed for kind_results in results.values() for is_passed in kind_results]),
        "kinds": {kind: share_passed(kind_results) for kind, kind_results in results.items() if kind},
    }
