"""Parts for tests of logic: a scripted LLM, an embedder of words, a retriever with fixed passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from assistant.errors import ModelError
from assistant.library.shelves import library_folder
from assistant.library.writer import writing
from assistant.protocols import Parts, Step
from assistant.retrieve.dense import Lookup
from assistant.settings import Settings
from assistant.steps import cite, fallback
from assistant.strategies.shared.strategy import strategy_named
from assistant.text.overlap import coverage
from assistant.types import Choice, Claim, Completion, Messages, Options, Passage, State, Turn, Verdict


@dataclass
class ScriptedLLM:
    """Says what it is told to, in order, through the LLM's public interface; keeps the prompts that it was given.

    A reply may be a text, or a function of the prompt. `choices` are the probabilities that `choose` gives, in order;
    when they run out, the first word gets 0.9.
    """

    replies: list[object] = field(default_factory=list)
    choices: list[dict[str, float]] = field(default_factory=list)
    prompts: list[Messages] = field(default_factory=list)
    asked: list[Messages] = field(default_factory=list)
    name: str = "scripted"
    context: int = 4096
    backend = "llama.cpp"
    can_score = False  # a subclass that overrides `score` sets it

    def count(self, messages: Messages) -> int:
        return sum(len(message.content.split()) for message in messages)

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        self.prompts.append(messages)
        words = self._next(messages).split(" ")
        for n in range(1, len(words) + 1):
            if stop.is_set():
                yield Completion(" ".join(words[: n - 1]), self.count(messages), n - 1, finish="cancelled")
                return
            yield Completion(" ".join(words[:n]), self.count(messages), n)
        yield Completion(" ".join(words), self.count(messages), len(words), finish="stop")

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        return [list(self.stream(messages, options, stop))[-1] for messages in batch]

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        self.asked.extend(batch)
        rest = 0.1 / max(len(words) - 1, 1)
        usual = {word: 0.9 if n == 0 else rest for n, word in enumerate(words)}
        return [Choice(self.choices.pop(0) if self.choices else usual, self.count(m)) for m in batch]

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        raise ModelError("The script can't tell how likely a text is.")

    def _next(self, messages: Messages) -> str:
        assert self.replies, f"the script has no reply left for: {messages[-1].content[:200]}"
        reply = self.replies.pop(0)
        return reply(messages) if callable(reply) else str(reply)


class Reader(ScriptedLLM):
    """Tells how far it has read each prompt before it says anything."""

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        for read in (4, 10):
            yield Completion("", 10, read=read)
        yield from super().stream(messages, options, stop)


class OutOfRoom(ScriptedLLM):
    """Breaks off as if the room for each reply ended with the script."""

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        for completion in super().stream(messages, options, stop):
            yield replace(completion, finish="length") if completion.finish == "stop" else completion


class WordEmbedder:
    """Bags of words as vectors: texts that share words are close. Deterministic and instant."""

    name = "words"
    device = "cpu"
    window = 160

    def count(self, text: str) -> int:
        return len(text.split())

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), 2048), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[crc32(word.strip(".,;:!?\"'").encode("utf-8", "replace")) % 2048] += 1
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(norms, 1e-9), dtype=np.float32)

    @contextmanager
    def caching_in(self, _folder: Path) -> Iterator[None]:
        yield


WORDS = WordEmbedder()


@dataclass
class WordJudge:
    """Says that what a sentence says is supported by a text with all its words, and partly by one with half of them.

    A `reply` given for a sentence goes before that; it keeps the `claims` that it was asked about.
    """

    replies: dict[str, State] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    threshold: float = 0.9

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        self.claims.extend(claims)
        return [self._verdict(claim) for claim in claims]

    def _verdict(self, claim: Claim) -> Verdict:
        share = coverage(claim.sentence, " ".join(passage.titled for passage in claim.evidence))
        state: State = "supported" if share >= self.threshold else "partly" if share >= 0.5 else "not"
        return Verdict(share, self.replies.get(claim.sentence, state))


@dataclass
class FixedRetriever:
    """Gives the same passages whatever is asked, and remembers what was asked."""

    passages: list[Passage]
    queries: list[str] = field(default_factory=list)

    def search(self, query: str, k: int) -> list[Passage]:
        self.queries.append(query)
        return self.passages[:k]


def library_of(settings: Settings, name: str, passages: Sequence[Passage]) -> None:
    """A library of this name that holds just these passages."""
    folder = library_folder(name, settings)
    folder.mkdir(parents=True, exist_ok=True)
    with writing(folder) as writer:
        writer.clear()
        writer.add(name, passages)
        writer.commit({})


def by_id(passages: Sequence[Passage]) -> Lookup:
    """What finds these passages by their ids."""
    kept = {one.id: one for one in passages}
    return lambda ids: [kept.get(one) for one in ids]


def answering(name: str) -> Step:
    """The strategy of this name with what a turn does behind it: its answer cited, and another where that is none."""

    def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
        turn = replace(turn, choices=replace(turn.choices, strategy=name))
        for step in (strategy_named(name).run, cite.run, fallback.run):
            for turn in step(turn, parts, stop):
                yield turn

    return run
