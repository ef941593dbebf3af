"""Tells whether a reply says that it does not know: one function, used everywhere.

The prompts ask for one word, "unknown". This looks for that word, and for the one sentence that the post-fusion paper
names as what a model says instead (section 3.1). A refusal in other words is a reply that no passage supports,
which the judge of support and the second look recognise.
"""

from __future__ import annotations

import re

from assistant.text.sentences import normalise

# The word alone, or in a frame ("Answer: unknown", "The answer is unknown"), and what may follow it.
_UNKNOWN_REPLY = re.compile(
    r"\W*(?:(?:final )?answer\W+)?(?:(?:the answer|it|that|this)(?: is|'s) )?unknown(?:\W*$|\s*[.,;:!?\n–—(-])",
    re.IGNORECASE,
)
# normalised like the answers that are measured
_PAPER_SENTENCE = normalise("The provided input does not contain the context to answer the question.")


def says_unknown(text: str) -> bool:
    """Whether the reply is empty, begins with "unknown" as the prompts ask for, or is the paper's sentence.

    "Unknown Pleasures" is an answer, and so is a reply that answers first and then adds what is unknown.
    """
    is_empty = not text.strip(" .*_\"'\n\t")
    return is_empty or bool(_UNKNOWN_REPLY.match(text.replace("’", "'"))) or normalise(text) == _PAPER_SENTENCE
