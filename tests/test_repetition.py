"""Replies that go round are ended after their first round; what repeats for a reason is left alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Event

import pytest

from assistant.library.corpus import load_corpus
from assistant.llm.backends.llama_cpp import LlamaCpp
from assistant.llm.repetition import RepetitionCutter, without_repetition
from assistant.types import Completion, Message, Messages, Options
from tests.scripted import ScriptedLLM

SHARED = Path(__file__).parents[2] / "shared" / "data"
ASKED = (Message("user", "Which countries border mine?"),)
COUNTRIES = "China, Russia, Tajikistan, Kyrgyzstan, Uzbekistan"


def numbered(items: Sequence[str], times: int) -> str:
    return "\n".join(f"{n}. {item}" for n, item in zip(count(1), list(items) * times, strict=False))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"They are {', '.join([COUNTRIES] * 4)}, China", f"They are {COUNTRIES}"),
        (numbered(COUNTRIES.split(", "), 4), numbered(COUNTRIES.split(", "), 1)),
        ("Yes. " + "They are found in every habitat. " * 4, "Yes. They are found in every habitat."),
        (
            "I'm a little lost, I'm afraid." + " I'm just a little lost, I'm afraid." * 5,
            "I'm a little lost, I'm afraid.",
        ),
        ("It is very " + "very " * 20, "It is very"),
        ("| a |\n" + "| Chad | Chad | CHD |\n" * 6, "| a |\n| Chad | Chad | CHD |"),
        ("你好吗，我很好。" * 4, "你好吗，我很好。"),
        ("मैं ठीक हूँ। " * 9, "मैं ठीक हूँ।"),
    ],
)
def test_a_text_that_goes_round_ends_after_its_first_round(text: str, kept: str) -> None:
    assert without_repetition(text) == kept


def test_what_comes_again_and_again_between_other_things_ends_the_text() -> None:
    refrain = "They also ate a great variety of fish, and a great variety of vegetables, too. "
    text = "".join(f"{refrain}Thing {n} is new. " for n in range(9))
    assert without_repetition(text) == text[: text.index("Thing 2 is new.") + len("Thing 2 is new.")]


REFRAIN = "Oh, the rain comes down, comes down on the town,\nand I'll sing till the sun comes round.\n"
LEGITIMATE = {
    "a refrain": "".join(f"Grey is the {time}.\n{REFRAIN}" for time in ("morning", "noon", "night")),
    "emphasis": "It is very, very, very good, and never, never, never bad.",
    "a shared prefix": "".join(
        f"{name} has a population of {n} million people, {size} square kilometres of land and one capital. "
        for n, (name, size) in enumerate([("Norway", 385), ("Sweden", 450), ("Finland", 338), ("Denmark", 43)], 5)
    ),
    "a table": "| day | open |\n| --- | --- |\n" + "".join(
        f"| {day} | 9 to 5 |\n" for day in ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
    ),
    "code": "for row in rows:\n    for cell in row:\n        if cell:\n            print(cell)\n        else:\n"
    "            print(0)\n    print()\nfor row in rows:\n    print(row)\n",
    "a rhyme": "Row, row, row your boat gently down the stream, merrily, merrily, merrily, merrily, life is a dream.",
    "numbers": "0.333333333333333333333333333333333333333333 and 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16",
}  # fmt: skip


@pytest.mark.parametrize("text", LEGITIMATE.values(), ids=LEGITIMATE)
def test_what_repeats_for_a_reason_is_left_alone(text: str) -> None:
    assert without_repetition(text) == text


@pytest.mark.parametrize("corpus", ["squad", "nq", "hotpotqa", "2wikimultihopqa"])
def test_texts_of_people_are_practically_never_cut(corpus: str) -> None:
    file = SHARED / corpus / "corpus.jsonl.gz"
    if not file.exists():
        pytest.skip(f"needs {file}")
    texts = [passage.text for passage in load_corpus(file)]
    assert sum(without_repetition(text) != text for text in texts) <= len(texts) / 1000


@dataclass
class Endless(ScriptedLLM):
    """Writes a list for as long as it is listened to; `written` counts its words."""

    written: int = 0
    left: list[int] = field(default_factory=list)

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        text = ""
        try:
            while not stop.is_set() and self.written < options.max_tokens:
                text += f"{COUNTRIES.split(', ')[self.written % 5]}, "
                self.written += 1
                yield Completion(text, 1, self.written)
            yield Completion(text, 1, self.written, finish="length")
        finally:
            self.left.append(self.written)


def test_a_stream_is_left_as_soon_as_it_goes_round() -> None:
    llm = Endless()
    *_, last = RepetitionCutter(llm).stream(ASKED, Options(max_tokens=400), Event())
    assert (last.text, last.finish) == (COUNTRIES, "repeated")
    assert llm.left == [last.completion_tokens]
    assert llm.written < 20


def test_a_batch_is_cut_alike() -> None:
    [reply] = RepetitionCutter(Endless()).complete([ASKED], Options(max_tokens=400), Event())
    assert (reply.text, reply.finish) == (COUNTRIES, "repeated")


def test_what_does_not_go_round_passes_as_it_is() -> None:
    llm = ScriptedLLM(["Lentils are rich in protein."] * 2)
    *_, last = RepetitionCutter(llm).stream(ASKED, Options(), Event())
    assert (last.text, last.finish) == ("Lentils are rich in protein.", "stop")
    assert RepetitionCutter(llm).complete([ASKED], Options(), Event()) == [last]


POEM = (Message("system", "You are a helpful assistant."), Message("user", "Write a poem about the sea."))


def test_a_real_model_that_goes_round_is_ended(smollm: LlamaCpp) -> None:
    options = Options(max_tokens=300)
    [raw] = smollm.complete([POEM], options, Event())
    assert without_repetition(raw.text) != raw.text, "this model no longer goes round here; ask it for something else"
    *_, streamed = RepetitionCutter(smollm).stream(POEM, options, Event())
    [completed] = RepetitionCutter(smollm).complete([POEM], options, Event())
    assert streamed.finish == completed.finish == "repeated"
    # what the engine has read before may change a word from one reply to the next
    for reply in (streamed, completed):
        assert reply.text == without_repetition(reply.text)
        assert len(reply.text) < len(raw.text)
    assert streamed.completion_tokens < raw.completion_tokens
