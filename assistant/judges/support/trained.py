"""Support: does a passage say what a sentence of the answer says, as a reply to what was asked?

"Qatar" to "Who hosted the 2022 World Cup?" is supported by a passage that says so, and "Qatar" to "Who won it?" is not.
Sounding alike is not enough. Code has one veto, since a small model overlooks a digit: a sentence with a number, date
or name that neither the passages nor the other given texts have is partly supported at best. The weights that come with
Sequitur are in shipped/support; the README there says how they were trained, what was measured and where they fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event

from assistant.errors import ModelError
from assistant.judges.pair_model import PairModel
from assistant.judges.stand_ins import Instead, logged
from assistant.protocols import Embedder, Progress, SupportJudgeOf
from assistant.settings import Settings
from assistant.text.overlap import contradiction
from assistant.text.sentences import quote, sentences
from assistant.types import Claim, Passage, Verdict

SHIPPED = Path(__file__).parents[1] / "shipped" / "support"
# Tokens read of claim and evidence together, at most: two windows. The smaller judge reads no more than 160.
LENGTH = 384
# Words of a window, and how many passages' windows are read together.
WINDOW, TOGETHER = 80, 2


def judge(
    settings: Settings,  # noqa: ARG001 - the same for all settings
    embedder: Embedder | None,  # noqa: ARG001 - the same for all settings
    progress: Progress,  # noqa: ARG001 - the same for all settings
    instead: Instead = logged,  # noqa: ARG001 - the same for all settings
) -> SupportJudgeOf:
    """The judge that comes with Sequitur, loaded once for all turns.

    Raises:
        ModelError: its files are missing or damaged.
    """
    support = Support(SHIPPED)
    return lambda _: support


class Support:
    """The judge in a folder: a cross-encoder with its calibration.

    With a `base`, the folder holds what is added to this encoder.

    Raises:
        ModelError: the folder holds no such judge, or one that is damaged.
    """

    def __init__(self, folder: Path = SHIPPED, base: Path | None = None) -> None:
        try:
            self._model = PairModel(folder, LENGTH, base)
        except ModelError as error:
            raise ModelError(f"The support judge can't be used: {error}") from error

    @property
    def threshold(self) -> float:
        """The lowest probability at which a sentence counts as supported; `judge.json` says how it was chosen."""
        return self._model.curve.threshold

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        """One verdict for each claim. An empty sentence, or one without evidence, is not supported."""
        probabilities = self.probabilities(claims, stop)
        return [self._verdict(claim, probability) for claim, probability in zip(claims, probabilities, strict=True)]

    def probabilities(self, claims: Sequence[Claim], stop: Event) -> list[float]:
        """How likely each claim is supported, in [0, 1], without the veto.

        Evidence is read in windows, of which the best counts. The best windows of several passages are also read
        together, since a sentence may need both.
        """
        windows_by_claim = [
            [windows(passage) for passage in claim.evidence] if claim.sentence.strip() else [] for claim in claims
        ]
        single_probabilities = self._pair_probabilities(
            [
                (claim, text)
                for claim, by_passage in zip(claims, windows_by_claim, strict=True)
                for texts in by_passage
                for text in texts
            ],
            stop,
        )
        best_texts = [[max(texts, key=lambda text: single_probabilities[claim, text]) for texts in by_passage if texts]
                for claim, by_passage in zip(claims, windows_by_claim, strict=True)]  # fmt: skip
        joined_pairs = [(claim, " ".join(texts[:TOGETHER])) for claim, texts in zip(claims, best_texts, strict=True)]
        joint_probabilities = self._pair_probabilities(
            [pair for pair, texts in zip(joined_pairs, best_texts, strict=True) if len(texts) > 1], stop
        )
        return [
            max([joint_probabilities.get(pair, 0.0), *(single_probabilities[claim, text] for text in texts)])
            for claim, pair, texts in zip(claims, joined_pairs, best_texts, strict=True)
        ]

    def _pair_probabilities(self, keys: Sequence[tuple[Claim, str]], stop: Event) -> dict[tuple[Claim, str], float]:
        pairs = {key: (claimed(key[0].sentence, key[0].question), key[1]) for key in keys}
        distinct_pairs = list(dict.fromkeys(pairs.values()))
        probabilities = dict(zip(distinct_pairs, self._model.probabilities(distinct_pairs, stop), strict=True))
        return {key: probabilities[pair] for key, pair in pairs.items()}

    def _verdict(self, claim: Claim, probability: float) -> Verdict:
        threshold, partly = self._model.curve.threshold, self._model.curve.partly
        if veto := lacking(claim):
            # most of a sentence may be right all the same
            return Verdict(probability * threshold / 2, "partly" if probability >= threshold else "not", veto)
        if probability >= threshold:
            return Verdict(probability, "supported")
        return Verdict(probability, "partly" if probability >= partly else "not")


def claimed(sentence: str, question: str = "") -> str:
    """A sentence as the judge reads it, in training and in use: after the question that it replies to, if any."""
    trimmed_question = question.strip()
    return f"{trimmed_question.rstrip('?')}? {sentence.strip()}".strip() if trimmed_question else sentence.strip()


def windows(passage: Passage) -> list[str]:
    """A passage in windows of whole sentences, each with the title before it; half of each is in the next one as well.

    The judge was trained on short texts, and judges them better: AUC 0.80 on long development pairs, read whole 0.62.
    """
    spans = sentences(passage.text)
    word_counts = [len(quote(passage.text, span).split()) for span in spans]
    texts, start, end = list[str](), 0, 0
    while end < len(spans):
        end = _window_end(word_counts, start, WINDOW)
        text = passage.text[spans[start].start : spans[end - 1].end]
        texts.append(f"{passage.full_title}: {text}" if passage.full_title else text)
        start = max(start + 1, _window_end(word_counts[:end], start, sum(word_counts[start:end]) // 2))
    return texts


def _window_end(word_counts: Sequence[int], start: int, max_words: int) -> int:
    """The index after the last sentence of a window, which has at most `max_words` words but at least one sentence."""
    end = start + 1
    while end < len(word_counts) and sum(word_counts[start : end + 1]) <= max_words:
        end += 1
    return min(end, len(word_counts))


def lacking(claim: Claim) -> str:
    """The number, date or name of a claim that neither its evidence, the question nor what was given has; "" for none.

    All judges of support have this veto.
    """
    evidence_text = " ".join(passage.titled for passage in claim.evidence)
    return contradiction(claim.sentence, evidence_text, f"{claim.question} {claim.given}")
