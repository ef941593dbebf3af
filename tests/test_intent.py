import json
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from assistant.llm.embedder import SentenceEmbedder
from assistant.protocols import Parts
from assistant.settings import TurnSettings
from assistant.steps import converse
from assistant.steps import intent as step
from assistant.steps.intent import intent_of
from assistant.types import Exchange, Intent, Turn
from assistant.wording.replies import fixed
from tests.scripted import WORDS, ScriptedLLM, WordEmbedder

ROWS = [json.loads(line) for line in (Path(__file__).parent / "data/intents.jsonl").read_text("utf-8").splitlines()]
KNOBS = TurnSettings()


@pytest.mark.model
def test_the_gate_holds_on_labelled_messages(embedder: SentenceEmbedder) -> None:
    """Floors under what was measured (docs/results/gates.md), so that a change for the worse is noticed."""
    found = [intent_of(row["text"], embedder, KNOBS) for row in ROWS]
    right = [(got == "question") == (row["intent"] == "question") for got, row in zip(found, ROWS, strict=True)]
    asked = [got for got, row in zip(found, ROWS, strict=True) if row["intent"] == "question"]
    assert sum(right) / len(right) >= 0.85
    assert asked.count("question") / len(asked) >= 0.90
    written = [(got, row["intent"]) for got, row in zip(found, ROWS, strict=True) if "writing" in (got, row["intent"])]
    assert written.count(("writing", "writing")) / len(written) >= 0.75
    assert written.count(("writing", "question")) <= 1


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("Hello, how are you?", "small_talk"),
        ("Hello, what is the capital of Norway?", "question"),
        ("What did I just ask you?", "conversation"),
        ("What do you know about me?", "conversation"),
        ("What's so great about the 3rd one?", "question"),
        ("I've just become vegan.", "small_talk"),
        ("I've just become vegan. What should I eat?", "question"),
        ("I'm from Kenya and I'm vegetarian.", "small_talk"),
        ("I live in Japan and work as a teacher. My son is allergic to nuts.", "small_talk"),
        ("I'm from Kenya and I'm vegetarian. Suggest a lunch.", "question"),
        ("My son is allergic to nuts, what can he eat?", "question"),
        ("I'm interested in the economy of Ghana.", "question"),
        ("I want to travel to Japan.", "question"),
        ("日本の首都は?", "question"),
        ("Write a poem about cats", "writing"),
        ("Write an email to my landlord. The heating is broken.", "writing"),
        ("Write a poem about cats. And what do they eat?", "question"),
        ("Write a summary of Kenya's economy", "question"),
        ("How do I write a good cover letter?", "question"),
        ("What does the poem in my document say about spring?", "question"),
    ],
)
def test_what_must_not_go_wrong(embedder: SentenceEmbedder, text: str, intent: str) -> None:
    assert intent_of(text, embedder, KNOBS) == intent


@pytest.mark.model
def test_what_is_told_is_thanked_for_without_asking_the_model(parts: Parts, embedder: SentenceEmbedder) -> None:
    llm = ScriptedLLM()
    turn = Turn("I'm from Kenya and I have diabetes.")
    *_, turn = converse.run(turn, replace(parts, llm=llm, embedder=embedder), Event())
    assert turn.answer == fixed("acknowledged", "conversation")
    assert llm.prompts == []


@pytest.mark.parametrize(("intent", "first"), [("conversation", 0), ("small_talk", 5)])
def test_what_is_asked_about_the_conversation_is_answered_from_all_of_it(
    parts: Parts, intent: Intent, first: int
) -> None:
    said = tuple(Exchange(f"question {n}", f"question {n}", "word " * 100) for n in range(9))
    llm = ScriptedLLM(["You asked question 0."])
    turn = Turn("What did I ask you first?", history=said, intent=intent)
    *_, turn = converse.run(turn, replace(parts, llm=llm), Event())
    asked = [message.content for message in llm.prompts[0] if message.role == "user"]
    assert asked == [*(f"question {n}" for n in range(first, 9)), "What did I ask you first?"]
    assert turn.answer is not None


def test_a_message_is_encoded_once_since_many_wait_for_the_encoder(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent_of("Hello", WORDS, KNOBS)  # it learns from examples first
    encoded, encode = list[list[str]](), WordEmbedder.encode

    def noted(embedder: WordEmbedder, texts: list[str]) -> object:
        encoded.append(list(texts))
        return encode(embedder, texts)

    monkeypatch.setattr(WordEmbedder, "encode", noted)
    said = "How rich in protein are lentils?"
    *_, turn = step.run(Turn(said), parts, Event())
    assert turn.intent == "question"
    assert encoded == [[said, "How rich in protein"]]
