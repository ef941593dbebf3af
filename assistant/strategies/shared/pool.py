"""The pool of post-fusion: groups candidates that say the same, counts their votes, and elects the winner.

Short answers are the same if their normalised strings are; chat answers are the same if their embeddings are close and
their numbers and names agree, which embeddings hardly reflect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from assistant.protocols import Embedder
from assistant.text.markers import extract_markers
from assistant.text.overlap import disagree
from assistant.text.sentences import normalise
from assistant.types import Answer, Candidate

# The answer of a pool in which all candidates are unknown.
NO_ANSWER = Answer("unknown", unknown=True, origin="pool")
# The lowest mean cosine at which chat answers count as the same.
SAME = 0.75


def vote(pool: Sequence[Candidate], form: str, embedder: Embedder) -> tuple[Candidate, ...]:
    """The pool with `votes` (how many candidates say the same, itself included) and `group` (the number of its group).

    Unknown candidates have neither.
    """
    groups = _groups(pool, form, embedder)
    sizes = Counter(groups)
    answered_groups = [group for candidate, group in zip(pool, groups, strict=True) if not candidate.unknown]
    numbers = {group: n for n, group in enumerate(dict.fromkeys(answered_groups))}
    return tuple(
        candidate if candidate.unknown else replace(candidate, votes=sizes[group], group=numbers[group])
        for candidate, group in zip(pool, groups, strict=True)
    )


def elect(pool: Sequence[Candidate], form: str, embedder: Embedder) -> Candidate | None:
    """The winner of a pool that was voted on, or None if all are unknown.

    Most votes win; ties go to the group whose best passage ranks higher. A group of chat answers is represented by the
    one nearest to its centre.
    """
    answered_candidates = [candidate for candidate in pool if not candidate.unknown]
    if not answered_candidates:
        return None
    best = max(answered_candidates, key=lambda candidate: candidate.votes)
    groups = _groups(pool, form, embedder)
    group = groups[list(pool).index(best)]
    members = [c for c, label in zip(pool, groups, strict=True) if label == group and not c.unknown]
    return members[0] if form == "factoid" else _central(members, embedder)


def following(answer: Answer | None, texts: Sequence[str]) -> Sequence[str]:
    """The text that follows this answer in `texts`, as a list of one; empty after the last. Markers are ignored."""
    current = extract_markers(answer.text).text if answer else ""
    plain_texts = [extract_markers(text).text for text in texts]
    return texts[plain_texts.index(current) + 1 :][:1] if current in plain_texts else ()


def _groups(pool: Sequence[Candidate], form: str, embedder: Embedder) -> list[str]:
    """A label for each candidate; equal labels mean equal answers."""
    if form == "factoid":
        return ["unknown" if candidate.unknown else normalise(candidate.text) for candidate in pool]
    answers = [candidate.text for candidate in pool if not candidate.unknown]
    if len(answers) < 2:
        return ["unknown" if candidate.unknown else "0" for candidate in pool]
    from sklearn.cluster import AgglomerativeClustering  # noqa: PLC0415 - slow to import, and only chat answers need it

    clusters = AgglomerativeClustering(
        n_clusters=None, distance_threshold=1 - SAME, metric="precomputed", linkage="average"
    ).fit_predict(_distances(answers, embedder))
    labels = iter(clusters)
    return ["unknown" if candidate.unknown else str(next(labels)) for candidate in pool]


def _distances(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float64]:
    """1 - cosine of each pair, shape (n, n); pairs that disagree are too far apart to be in one cluster."""
    vectors = embedder.encode(texts).astype(np.float64)
    distances = 1 - vectors @ vectors.T
    for (i, text), (j, other) in combinations(enumerate(texts), 2):
        if disagree(text, other):
            distances[i, j] = distances[j, i] = len(texts) ** 2
    return distances


def _central(members: Sequence[Candidate], embedder: Embedder) -> Candidate:
    vectors = embedder.encode([member.text for member in members])
    return members[int(np.argmax(vectors @ vectors.mean(axis=0)))]
