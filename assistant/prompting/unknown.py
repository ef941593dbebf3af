"""Tells whether a reply says that it does not know. One function, used everywhere.

The prompts ask for one word, "unknown", and that word is looked for, and the one sentence that the post-fusion paper
names as what a model says instead (its section 3.1). A model that refuses in other words says something that no passage
backs, which the judges tell: of support, and of whether a reply addresses its question.
"""

from __future__ import annotations

import re

from assistant.text.sentences import normalise

# The word alone, labelled or framed ("Answer: unknown", "The answer is unknown"), and what may follow it.
_WORD = re.compile(
    r"\W*(?:(?:final )?answer\W+)?(?:(?:the answer|it|that|this)(?: is|'s) )?unknown(?:\W*$|\s*[.,;:!?\n–—(-])",
    re.IGNORECASE,
)
# normalised, as the measures do it
_PAPERS = normalise("The provided input does not contain the context to answer the question.")


def says_unknown(text: str) -> bool:
    """Whether the reply begins with "unknown", as the prompts ask for, or is the paper's sentence; so is an empty one.

    "Unknown Pleasures" is an answer, and so is a reply that answers first and then adds what is unknown.
    """
    empty = not text.strip(" .*_\"'\n\t")
    return empty or bool(_WORD.match(text.replace("’", "'"))) or normalise(text) == _PAPERS
