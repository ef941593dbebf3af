"""Suitability by two judges together: one knows things and what facts rule out, the other reads fact and text together.

The tags (`tags.py`) know that a pad thai contains peanuts; they err on warnings, on facts that say the contrary, and on
everything that no table has. The reader (`reader.py`), a cross-encoder, can read those. A weighted mean of their
log-odds counts; if the tags know nothing of a fact, theirs are even. There are two readers. The small one is in
shipped/suitability/reader. Of the larger one, reader-large has what was learned, and the encoder that this is added to
is fetched. The README above them says how they were trained, how each is weighted, and where they fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from threading import Event
from typing import ClassVar

from assistant.errors import ModelError
from assistant.judges.adapted import encoder
from assistant.judges.json_file import JsonFile
from assistant.judges.stand_ins import Instead, logged
from assistant.judges.suitability.knowledge import SHIPPED, Knowledge
from assistant.judges.suitability.reader import Reader, as_reply
from assistant.judges.suitability.tags import ByTags
from assistant.protocols import Embedder, Progress, SuitabilityJudge
from assistant.settings import Settings

READER, READER_LARGE, BLEND = "reader", "reader-large", "blend.json"
# How many facts the reader is asked about: those that most surely rule something out. Few people state more.
FACTS = 24
# No judge counts as surer than this.
_EDGE = 0.01
# A text of at most this many words names a thing, such as an item of a list; a longer one is a sentence.
FEW = 6


@dataclass(frozen=True, slots=True)
class Blend(JsonFile):
    """How tags and reader are weighted, and from which probability on the two together mean a clash.

    `reader` is the reader's share of the log-odds of sentences, `few` its share for texts of few words, both in [0, 1];
    the tags have the rest. `questions` says whether the reader has learned to read texts as replies to a question; if
    not, it is given no question.
    """

    AGAIN: ClassVar[str] = "get or train the judge again"

    reader: float
    few: float
    threshold: float
    chosen_on: str
    questions: bool = False

    def __call__(self, text: str, evidence: tuple[float, float]) -> float:
        """The probability of a clash with the text, from the log-odds that tags and reader give."""
        tags, reader = evidence
        share = self.few if has_few_words(text) else self.reader
        return 1 / (1 + exp(-((1 - share) * tags + share * reader)))


def has_few_words(text: str) -> bool:
    """Whether a text is so short that it only names a thing."""
    return len(text.split()) <= FEW


@dataclass(frozen=True, slots=True)
class Both:
    """The two as one judge of suitability."""

    tags: ByTags
    reader: Reader
    blend: Blend

    @property
    def threshold(self) -> float:
        """The lowest value at which a pair counts as a clash; `blend.json` says on what it was chosen."""
        return self.blend.threshold

    def clashes(self, facts: Sequence[str], texts: Sequence[str], stop: Event, question: str = "") -> list[list[float]]:
        """How surely each fact clashes with each text, in [0, 1]: a row for each fact, a column for each text.

        Of many facts those are read that most surely rule something out; the others clash with nothing, as do empty
        facts and texts. With a `question` the texts are read as replies to it. When `stop` is set, what wasn't read yet
        has 0.
        """
        rows = [[0.0] * len(texts) for _ in facts]
        for (fact_index, text_index), log_odds in self.evidence(facts, texts, stop, question).items():
            rows[fact_index][text_index] = self.blend(texts[text_index], log_odds)
        return rows

    def evidence(
        self, facts: Sequence[str], texts: Sequence[str], stop: Event, question: str = ""
    ) -> dict[tuple[int, int], tuple[float, float]]:
        """The log-odds that tags and reader give to pairs, by the indices of fact and text; of those that were read."""
        question = question if self.blend.questions else ""
        clean_facts = [" ".join(fact.split()) for fact in facts]
        clean_texts = [" ".join(text.split()) for text in texts]
        by_tags = self.tags.clashes(clean_facts, clean_texts, stop)
        fact_indices = [n for n in self._facts_to_read(clean_facts, stop) if clean_facts[n]]
        pairs = {
            (fact_index, text_index): (clean_facts[fact_index], as_reply(text, question))
            for fact_index in fact_indices
            for text_index, text in enumerate(clean_texts)
            if text
        }
        logits = self.reader.logits(list(pairs.values()), stop)
        return {
            position: (_log_odds(by_tags[position[0]][position[1]]), logits[pair])
            for position, pair in pairs.items()
            if pair in logits
        }

    def _facts_to_read(self, facts: Sequence[str], stop: Event) -> list[int]:
        """The indices of the facts that are read."""
        if len(facts) <= FACTS:
            return list(range(len(facts)))
        probabilities = self.tags.rules_out(facts, stop)
        return sorted(range(len(facts)), key=lambda n: -probabilities[n])[:FACTS]


def judge_of(folder: Path, embedder: Embedder, base: Path | None = None) -> SuitabilityJudge:
    """The judge in a folder: tags and reader together, or the tags alone if there is no reader.

    With a `base`, the larger reader is used, of which the folder holds what is added to this encoder.

    Raises:
        ModelError: what was learned is missing, broken, or belongs to another embedder.
    """
    tags, reader = ByTags(Knowledge.load(folder), embedder), folder / (READER_LARGE if base else READER)
    if folder != SHIPPED and not reader.exists():
        return tags
    return Both(tags, Reader(reader, base), Blend.load(reader / BLEND))


def shipped(settings: Settings, embedder: Embedder, progress: Progress, instead: Instead = logged) -> SuitabilityJudge:
    """The judge that comes with Sequitur, with the reader that is set; the small one if the larger can't be fetched.

    `instead` is called in that case.

    Raises:
        ModelError: as `judge_of` does.
    """
    if settings.facts.suitability == "small":
        return judge_of(SHIPPED, embedder)
    try:
        return judge_of(SHIPPED, embedder, encoder(settings, progress))
    except ModelError as error:
        instead("what suits a person", error)
        return judge_of(SHIPPED, embedder)


def _log_odds(probability: float) -> float:
    """The log-odds of a probability by tags; even odds if it is 0, since the tags then know nothing of the pair."""
    if not probability:
        return 0.0
    clipped = min(max(probability, _EDGE), 1 - _EDGE)
    return log(clipped / (1 - clipped))
