"""Tells whether a reply says that it does not know. One function, used everywhere.

The prompts ask for one word, "unknown", and only that word is looked for. A model that refuses in other words says
something that no passage backs, which the support judge tells.
"""

from __future__ import annotations

import re

# The word alone, labelled or framed ("Answer: unknown", "The answer is unknown"), and what may follow it.
_WORD = re.compile(
    r"\W*(?:(?:final )?answer\W+)?(?:(?:the answer|it|that|this)(?: is|'s) )?unknown(?:\W*$|\s*[.,;:!?\n–—(-])",
    re.IGNORECASE,
)


def says_unknown(text: str) -> bool:
    """Whether the reply begins with "unknown", as the prompts ask for; an empty one counts as unknown.

    "Unknown Pleasures" is an answer, and so is a reply that answers first and then adds what is unknown.
    """
    return not text.strip(" .*_\"'\n\t") or bool(_WORD.match(text.replace("’", "'")))
