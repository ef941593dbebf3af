"""The pool of post-fusion: which candidates say the same, how many votes each has, and who wins.

Short answers are the same when their normalised strings are; chat answers are the same when their embeddings are close
and their numbers and names agree, which embeddings hardly see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from assistant.protocols import Embedder
from assistant.text.markers import read
from assistant.text.overlap import disagree
from assistant.text.sentences import normalise
from assistant.types import Answer, Candidate

# The answer of a pool whose passages all gave none.
NO_ANSWER = Answer("unknown", unknown=True, origin="pool")
# Mean cosine from which two chat answers count as one.
SAME = 0.75


def vote(pool: Sequence[Candidate], form: str, embedder: Embedder) -> tuple[Candidate, ...]:
    """The pool with `votes`, how many candidates, itself included, say the same, and `group`, which do.

    Unknown ones have neither.
    """
    groups = _groups(pool, form, embedder)
    sizes = Counter(groups)
    known = [group for candidate, group in zip(pool, groups, strict=True) if not candidate.unknown]
    numbers = {group: n for n, group in enumerate(dict.fromkeys(known))}
    return tuple(
        candidate if candidate.unknown else replace(candidate, votes=sizes[group], group=numbers[group])
        for candidate, group in zip(pool, groups, strict=True)
    )


def elect(pool: Sequence[Candidate], form: str, embedder: Embedder) -> Candidate | None:
    """The winner of a pool that was voted on, or None if all are unknown.

    Most votes win; ties go to the group whose best passage ranks higher. Of a group of chat answers the one nearest its
    centre speaks.
    """
    known = [candidate for candidate in pool if not candidate.unknown]
    if not known:
        return None
    best = max(known, key=lambda candidate: candidate.votes)
    groups = _groups(pool, form, embedder)
    group = groups[list(pool).index(best)]
    members = [c for c, of in zip(pool, groups, strict=True) if of == group and not c.unknown]
    return members[0] if form == "factoid" else _central(members, embedder)


def following(answer: Answer | None, texts: Sequence[str]) -> Sequence[str]:
    """The text that comes next after this answer, which may have got markers since; none after the last."""
    said = read(answer.text).text if answer else ""
    plain = [read(text).text for text in texts]
    return texts[plain.index(said) + 1 :][:1] if said in plain else ()


def _groups(pool: Sequence[Candidate], form: str, embedder: Embedder) -> list[str]:
    """A label for each candidate; equal labels mean equal answers."""
    if form == "factoid":
        return ["unknown" if candidate.unknown else normalise(candidate.text) for candidate in pool]
    known = [candidate.text for candidate in pool if not candidate.unknown]
    if len(known) < 2:
        return ["unknown" if candidate.unknown else "0" for candidate in pool]
    from sklearn.cluster import AgglomerativeClustering  # noqa: PLC0415 - slow, and short answers do without

    clusters = AgglomerativeClustering(
        n_clusters=None, distance_threshold=1 - SAME, metric="precomputed", linkage="average"
    ).fit_predict(_distances(known, embedder))
    labels = iter(clusters)
    return ["unknown" if candidate.unknown else str(next(labels)) for candidate in pool]


def _distances(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float64]:
    """1 - cosine of each pair, shape (n, n); of two that disagree more than a cluster's mean can make up for."""
    vectors = embedder.encode(texts).astype(np.float64)
    distances = 1 - vectors @ vectors.T
    for (i, one), (j, other) in combinations(enumerate(texts), 2):
        if disagree(one, other):
            distances[i, j] = distances[j, i] = len(texts) ** 2
    return distances


def _central(members: Sequence[Candidate], embedder: Embedder) -> Candidate:
    vectors = embedder.encode([member.text for member in members])
    return members[int(np.argmax(vectors @ vectors.mean(axis=0)))]
