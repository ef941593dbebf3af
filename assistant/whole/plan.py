"""What work on whole documents takes: the sections that are read one after the other, and the time for that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from assistant.errors import LibraryError
from assistant.library.passages import document_of
from assistant.prompting.render import render
from assistant.protocols import LLM
from assistant.text.chunks import count_words
from assistant.types import Passage, Work

# Words of a section of a short document; a long one has longer sections, so that they are no more than so many.
SECTION_WORDS, MAX_SECTIONS = 400, 40
TABLE_WORDS = 200  # of longer sections a small model tells few rows
MAX_PASSAGES = 1000
# Tokens: of a word in English, of a prompt beside its section, and of what is written of a section.
TOKENS_PER_WORD, PROMPT_TOKENS, WRITTEN_TOKENS = 1.4, 150, 60
DOCUMENT_COUNTS = {"summary": 1, "table": 1, "compare": 2, "changes": 2}


@dataclass(frozen=True, slots=True)
class Cost:
    """How many passages are read, how often the model is asked, and the tokens that it reads and writes for that."""

    passages: int
    calls: int
    read: int
    written: int

    def seconds(self, read: float, written: float) -> float:
        """How long it takes a model that reads and writes so many tokens a second."""
        return self.read / read + self.written / written


def check(work: Work) -> None:
    """See that the work can be begun.

    Raises:
        LibraryError: it takes another number of documents, or says not what the table is to hold.
    """
    needed = DOCUMENT_COUNTS[work.task]
    if len(work.documents) != needed:
        raise LibraryError(f"This takes {'one document' if needed == 1 else 'two documents'}; name as many.")
    if len(set(work.documents)) < needed:
        raise LibraryError("A document can't be compared with itself; choose another one.")
    if work.task == "table" and not work.columns:
        raise LibraryError("Say what the table is to hold: the names of its columns, such as: item, price.")


def sections(passages: Sequence[Passage], max_words: int = SECTION_WORDS) -> list[tuple[Passage, ...]]:
    """Consecutive passages of a document that are read together, of about so many words; more in a long document.

    Raises:
        LibraryError: there are too many passages.
    """
    if len(passages) > MAX_PASSAGES:
        raise LibraryError(
            f"This is {len(passages):,} passages, and at most {MAX_PASSAGES:,} are worked through. Add its chapters "
            "as documents of their own and work on each, or ask about it in a conversation, which searches all of it."
        )
    total = sum(count_words(passage.text) for passage in passages)
    word_limit = max(max_words, total // MAX_SECTIONS)
    all_sections: list[tuple[Passage, ...]] = []
    for _, group in groupby(passages, key=lambda passage: document_of(passage.id)):
        current, words = tuple[Passage, ...](), 0
        for passage in group:
            passage_words = count_words(passage.text)
            if current and words + passage_words > word_limit:
                all_sections.append(current)
                current, words = (), 0
            current, words = (*current, passage), words + passage_words
        all_sections.append(current)
    return all_sections


def readable_sections(
    passages: Sequence[Passage], max_words: int, prompt: str, llm: LLM, reply: int, **values: Any
) -> Iterator[tuple[Passage, ...]]:
    """The sections of `sections`, halved until the prompt with each fits the model's context beside a reply.

    A single passage is not halved. `reply` is in tokens; `values` are what the prompt holds beside its passages.

    Raises:
        LibraryError: there are too many passages.
    """
    waiting = sections(passages, max_words)[::-1]
    while waiting:
        section = waiting.pop()
        if len(section) > 1 and llm.count(render(prompt, passages=section, **values)) > llm.context - reply:
            middle = len(section) // 2
            waiting += [section[middle:], section[:middle]]
        else:
            yield section


def cost(work: Work, passages: Sequence[Passage]) -> Cost:
    """What the work will take, as far as that can be told.

    Raises:
        LibraryError: there are too many passages.
    """
    parts = sections(passages, TABLE_WORDS if work.task == "table" else SECTION_WORDS)
    if work.task == "changes":
        return Cost(len(passages), 0, 0, 0)
    calls = len(parts) + (work.task == "summary")
    words = sum(count_words(passage.text) for passage in passages)
    read = int(words * TOKENS_PER_WORD) + PROMPT_TOKENS * calls
    return Cost(len(passages), calls, read, WRITTEN_TOKENS * calls)
