"""What changed from one document to the next: sentence by sentence, told by comparing, so that nothing is made up."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from threading import Event

from assistant.grounding.evidence import Evidence
from assistant.grounding.support import Finding
from assistant.library.passages import document_of
from assistant.protocols import Parts
from assistant.text.sentences import quote, sentences
from assistant.types import Answer, Passage, Span, Turn, Wait
from assistant.whole.lines import CERTAIN, Line, quoted_line, with_answer_lines
from assistant.whole.pairs import nearest_pairs

# From this cosine on, a sentence of the one document is another form of one of the other.
SAME_MATTER = 0.75
# Dashes and apostrophes are written in several ways, and stand for nothing else; soft hyphens are not seen.
_TRANSLATION = {**dict.fromkeys(map(ord, "‐‑‒–—−"), "-"), **dict.fromkeys(map(ord, "‘’ʼ"), "'"), 0xAD: None}
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")  # those at the end of a line are often lost
_OUTER_MARKS = "\"'“”„«»()[]{}.,;:!?…*•-"
_SIGN = re.compile(r"-?\.?$")  # before a number these say something: "-18", ".5"
_POWER = re.compile(r"(?<=\d)(?=[²³¹⁰⁴-⁹])")
CHANGED, NEW, GONE = "Changed", "New", "Gone"
NO_CHANGES = "Both say the same, sentence by sentence."


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence where it stands."""

    passage: Passage
    span: Span

    @property
    def text(self) -> str:
        return quote(self.passage.text, self.span)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`: the sentences that were changed, that are new, and that are gone, each cited."""
    yield replace(turn, wait=Wait("passages", total=len(turn.passages)))
    old_sentences, new_sentences = (
        [_Sentence(passage, span) for passage in passages for span in sentences(passage.text)]
        for passages in passages_by_document(turn)
    )
    gone, new = _missing_from(old_sentences, new_sentences), _missing_from(new_sentences, old_sentences)
    gone_texts, new_texts = ([sentence.text for sentence in side] for side in (gone, new))
    nearest = [] if stop.is_set() else nearest_pairs(gone_texts, new_texts, SAME_MATTER, parts.embedder)
    pairs = sorted(nearest, key=itemgetter(1))
    changed = [_change(gone[old_index], new[new_index]) for old_index, new_index in pairs]
    paired_old, paired_new = {old_index for old_index, _ in pairs}, {new_index for _, new_index in pairs}
    lines_by_heading = {
        CHANGED: changed,
        NEW: [
            quoted_line(sentence.text, sentence.passage, sentence.span)
            for n, sentence in enumerate(new)
            if n not in paired_new
        ],
        GONE: [
            quoted_line(sentence.text, sentence.passage, sentence.span)
            for n, sentence in enumerate(gone)
            if n not in paired_old
        ],
    }
    lines = [
        line for name, found_lines in lines_by_heading.items() if found_lines for line in (Line(name), *found_lines)
    ]
    yield with_answer_lines(turn, lines) if lines else replace(turn, answer=Answer(NO_CHANGES))


def passages_by_document(turn: Turn) -> list[list[Passage]]:
    """The passages of each of the work's documents."""
    documents = turn.work.documents if turn.work else ()
    return [[passage for passage in turn.passages if document_of(passage.id) == document] for document in documents]


def _missing_from(candidates: Sequence[_Sentence], others: Sequence[_Sentence]) -> list[_Sentence]:
    """The sentences of the first that the others don't have, each once."""
    other_keys = {_key(sentence.text) for sentence in others} | {""}
    missing: dict[str, _Sentence] = {}
    for sentence in candidates:
        if (key := _key(sentence.text)) not in other_keys:
            missing.setdefault(key, sentence)
    return list(missing.values())


def _key(text: str) -> str:
    """What two sentences have alike that say the same: their words and numbers, however these are set and quoted."""
    words = unicodedata.normalize("NFKC", _POWER.sub("^", text)).casefold().translate(_TRANSLATION).split()
    return " ".join(filter(None, (_HYPHEN.sub("", _bare(word)) for word in words)))


def _bare(word: str) -> str:
    """The word without the marks around it; a number keeps its sign and its decimal point."""
    bare = word.lstrip(_OUTER_MARKS)
    marks = word[: len(word) - len(bare)]
    sign = _SIGN.search(marks) if bare[:1].isdigit() else None
    return (sign.group() if sign else "") + bare.rstrip(_OUTER_MARKS)


def _change(old: _Sentence, new: _Sentence) -> Line:
    evidence = (Evidence(old.passage, old.span, 1.0), Evidence(new.passage, new.span, 1.0))
    return Line(f"Before: “{old.text}” Now: “{new.text}”", Finding(evidence, CERTAIN))
