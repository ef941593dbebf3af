"""Self-consistency around any strategy: it is sampled several times, and the answers vote (post-fusion, section 4.4).

If every sample's answer was elected from a pool of votes, the pools are joined, so that p samples of post-fusion over k
passages vote with p x k answers. Otherwise (including when answers were weighed instead of counted) each sample votes
with its one answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event

from assistant.llm.wrapper import Wrapper
from assistant.protocols import LLM, Parts, Step
from assistant.strategies.shared.pool import NO_ANSWER, elect, vote
from assistant.strategies.shared.strategy import Strategy
from assistant.types import Answer, Candidate, Completion, Messages, Options, Turn

TEMPERATURE = 0.7


class Sampler(Wrapper):
    """An LLM wrapped around an LLM that samples where greedy text was asked for."""

    def __init__(self, llm: LLM, seed: int, temperature: float = TEMPERATURE) -> None:
        super().__init__(llm)
        self._seed, self._temperature = seed, temperature

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """As the model does it, at this sampler's temperature and seed."""
        return self._llm.stream(messages, self._sampling(options), stop)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """As the model does it, at this sampler's temperature and seed."""
        return self._llm.complete(batch, self._sampling(options), stop)

    def _sampling(self, options: Options) -> Options:
        return replace(options, temperature=self._temperature, seed=self._seed)


def sampled(strategy: Strategy, samples: int, seed: int) -> Strategy:
    """`strategy`, run `samples` times with seeds counting up from `seed`, and a vote over its answers.

    Its `retry` is sampled in the same way.
    """
    retry = _sampled(strategy.retry, samples, seed) if strategy.retry else None
    return replace(strategy, run=_sampled(strategy.run, samples, seed), retry=retry)


def _sampled(step: Step, samples: int, seed: int) -> Step:
    def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
        runs: list[Turn] = []
        for n in range(samples):
            latest = turn
            for latest in step(turn, replace(parts, llm=Sampler(parts.llm, seed + n)), stop):
                yield latest
            if stop.is_set():
                return
            runs.append(latest)
        if runs != [turn] * samples:
            yield _voted(runs, parts)

    return run


def _voted(runs: Sequence[Turn], parts: Parts) -> Turn:
    form = runs[0].choices.form
    pooled = all(_by_votes(run) for run in runs)
    candidates = [candidate for run in runs for candidate in run.pool] if pooled else [_candidate(run) for run in runs]
    pool = vote(candidates, form, parts.embedder)
    winner = elect(pool, form, parts.embedder)
    if pooled or winner is None:
        return replace(runs[0], pool=pool, answer=Answer(winner.text, origin="pool") if winner else NO_ANSWER)
    # the winning run also has what goes with its answer, such as the reasoning
    return replace(runs[pool.index(winner)], pool=pool)


def _by_votes(run: Turn) -> bool:
    by_pool = bool(run.pool) and run.answer is not None and run.answer.origin == "pool"
    return by_pool and not any(candidate.weight for candidate in run.pool)


def _candidate(run: Turn) -> Candidate:
    answer = run.answer or Answer("", unknown=True)
    return Candidate(answer.text, passage_id="", unknown=answer.unknown)
