"""Which item of a reply an utterance names by its place."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from assistant.protocols import Parts
from assistant.steps import rewrite
from assistant.steps.ordinals import spelt_out
from assistant.types import Exchange, Turn
from tests.scripted import ScriptedLLM


def said(utterance: str, reply: str) -> Exchange:
    return Exchange(utterance, utterance, reply)


TIPS = said(
    "Give me four tips for saving money.",
    "Here they are:\nSet up a standing order. Put half of every rise aside. Give each goal a name. Cook at home.",
)
BULLETS = said("How do I get to Oslo?", "You can go by:\n- train, in seven hours\n- plane, in one hour\n")
NESTED = said("What shall I grow?", "1. Oats\n   - soak\n   - boil\n2. Rice\n3. Bread")
STEPS = said(
    "How do I plan?", "Do this: 1) **Sum up**: say what you do.2) Describe the company. 3) Look at the market."
)
COMMAS = said("Which countries border Bolivia?", "They are Argentina, Brazil, Chile or Peru.")
CLAUSES = said("What helps?", "Good ones are Trello, which helps you to keep track of who does what, and Jira.")
NUMBERED = said("Which sports are good for the back?", "Good choices are 1. swimming, 2. yoga and 3. walking.")


@pytest.mark.parametrize(
    ("utterance", "last", "spelt"),
    [
        ("What's so great about the 3rd one?", TIPS, 'What\'s so great about "Give each goal a name"?'),
        ("Why the second?", TIPS, 'Why "Put half of every rise aside"?'),
        ("Tell me more about tip 1.", TIPS, 'Tell me more about "Set up a standing order".'),
        ("And the last of these?", TIPS, 'And "Cook at home"?'),
        ("Is the 2nd option cheaper?", BULLETS, 'Is "plane, in one hour" cheaper?'),
        ("Is option 1 cheaper?", BULLETS, 'Is "train, in seven hours" cheaper?'),
        ("Tell me about the second one", NESTED, 'Tell me about "Rice"'),
        ("Why is the second one good?", NUMBERED, 'Why is "yoga" good?'),
        ("Why is the third one good?", NUMBERED, 'Why is "walking" good?'),
        ("I'm unsure about the second step.", STEPS, 'I\'m unsure about "Describe the company".'),
        ("Is the fourth one far?", COMMAS, 'Is "Peru" far?'),
        ("Is the last one far?", COMMAS, 'Is "Peru" far?'),
    ],
)
def test_an_item_that_is_named_by_its_place_is_spelt_out(utterance: str, last: Exchange, spelt: str) -> None:
    assert spelt_out(utterance, last) == spelt


@pytest.mark.parametrize(
    ("utterance", "last"),
    [
        ("What about the ninth one?", TIPS),
        ("What about the 0th one?", TIPS),
        ("Who won the Second World War?", TIPS),
        ("What is the second language of Norway?", TIPS),
        ("How long did it last?", TIPS),
        ("Is that one 3 hours long?", TIPS),
        ("What is option 2024?", TIPS),
        ("Who was Elizabeth the First?", TIPS),
        ("What happened on June the 3rd?", TIPS),
        ("What is number 3 in the periodic table?", TIPS),
        (f"What is the {'9' * 5000}th one, or option {'9' * 5000}?", TIPS),
        ("How much is that?", TIPS),
        ("Why is the second one good?", said("How long is the coast?", "It is long. It has many fjords.")),
        ("Why is the second one good?", said("Name one.", "")),
        ("Why is the second one good?", CLAUSES),
        ("Is the last option real?", said("Nice options!", "Chewing gum is healthy. It reduces stress. It helps you.")),
    ],
)
def test_what_names_no_item_stays_as_it_is(utterance: str, last: Exchange) -> None:
    assert spelt_out(utterance, last) == utterance


def test_a_long_item_is_cut() -> None:
    spelt = spelt_out("Why the first one?", said("Which?", f"- {'very ' * 60}long\n- short"))
    assert len(spelt) < 190
    assert spelt.endswith('…"?')


@pytest.mark.parametrize("on", [True, False])
def test_a_turn_spells_it_out_unless_that_is_switched_off(parts: Parts, on: bool) -> None:
    knobs = parts.settings.turn.model_copy(update={"resolve_ordinals": on})
    llm = ScriptedLLM(["Why is walking good for the back?"])
    parts = replace(parts, settings=parts.settings.model_copy(update={"turn": knobs}), llm=llm)
    for _ in rewrite.run(Turn("Why is the third one good?", (NUMBERED,)), parts, Event()):
        pass
    assert ('"walking"' in llm.prompts[0][-1].content) == on
