"""What users choose is kept for each, and what can't be had any more falls back to the default."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from assistant.errors import SettingsError
from assistant.settings import RetrieveSettings, Settings
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.web.choices import UserChoices
from assistant.web.tab import Tab


@pytest.fixture
def conversations() -> Conversations:
    return Conversations(connect("sqlite://"))


@pytest.fixture
def choices(conversations: Conversations, settings: Settings) -> UserChoices:
    return UserChoices(conversations, settings)


def test_the_defaults_are_those_of_the_settings(choices: UserChoices, settings: Settings) -> None:
    chosen = choices("me")
    assert (chosen.strategy, chosen.loop) == (settings.turn.strategy, settings.turn.loop)
    assert (chosen.k, chosen.library) == (settings.retrieve.top_k, settings.library)


def test_a_loop_takes_its_own_number_of_passages_until_one_is_chosen(choices: UserChoices) -> None:
    choices.keep("ann", "loop", "itrg_refresh")
    assert choices("ann").k == 5
    choices.keep("ann", "k", 4)
    assert choices("ann").k == 4


def test_how_often_a_draft_is_written_is_a_choice(choices: UserChoices, settings: Settings) -> None:
    assert choices("ann").loops == settings.turn.grg_rounds == 1
    choices.keep("ann", "loop", "grg_draft")
    choices.keep("ann", "loops", 2)
    assert (choices("ann").loop, choices("ann").loops, choices("bob").loops) == ("grg_draft", 2, 1)


def test_a_number_that_goes_on_anyway_is_no_choice(choices: UserChoices, conversations: Conversations) -> None:
    choices.keep("ann", "loops", 1)
    assert conversations.preferences("ann") == {}
    choices.keep("ann", "loops", 2)
    choices.keep("ann", "loops", 1)
    assert conversations.preferences("ann") == {"loops": 1}


def test_each_users_choices_are_their_own(choices: UserChoices) -> None:
    choices.keep("ann", "k", 7)
    choices.keep("ann", "strategy", "concat")
    assert (choices("ann").k, choices("ann").strategy) == (7, "concat")
    assert choices("bob").k == 4


def test_choices_made_at_once_are_all_kept(choices: UserChoices, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Conversations.preferences

    def slowly(conversations: Conversations, user: str) -> dict[str, object]:
        found = read(conversations, user)
        sleep(0.05)
        return found

    monkeypatch.setattr(Conversations, "preferences", slowly)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda one: choices.keep("ann", *one), (("k", 7), ("strategy", "concat"), ("below", "own"))))
    assert (choices("ann").k, choices("ann").strategy, choices("ann").below) == (7, "concat", "own")


def test_how_passages_are_searched_is_a_choice(conversations: Conversations, settings: Settings) -> None:
    dense = settings.model_copy(update={"retrieve": RetrieveSettings(retriever="dense")})
    choices = UserChoices(conversations, dense)
    choices.keep("ann", "retriever", "hybrid")
    assert (choices("ann").retriever, choices("bob").retriever) == ("hybrid", "dense")


def test_what_happens_where_no_passage_answers_is_a_choice(choices: UserChoices) -> None:
    choices.keep("ann", "below", "refuse")
    assert (choices("ann").below, choices("bob").below) == ("refuse", "own")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k", 0),
        ("k", 21),
        ("loops", 0),
        ("loops", 6),
        ("k", "4"),
        ("k", None),
        ("strategy", "nosuch"),
        ("strategy", "../x"),
        ("loop", ["grg"]),
        ("library", "user-0"),
        ("retriever", "splade"),
        ("retriever", ["bm25"]),
        ("below", ""),
        ("below", "guess"),
    ],
)
def test_what_cannot_be_chosen_is_refused(choices: UserChoices, name: str, value: object) -> None:
    with pytest.raises(SettingsError, match="reload the page"):
        choices.keep("me", name, value)


def test_a_kept_choice_that_is_gone_falls_back(choices: UserChoices, conversations: Conversations) -> None:
    conversations.set_preferences("me", {"strategy": "removed", "library": "deleted", "k": 6})
    assert (choices("me").strategy, choices("me").library, choices("me").k) == ("concat_pf", "starter", 6)


def test_values_of_an_event_are_taken_for_what_they_are() -> None:
    tab = Tab("me", data={"place": "2", "value": -1, "text": "x", "odd": "٣", "list": [1], "long": "9" * 5000})
    assert (tab.number("place"), tab.number("value"), tab.number("odd"), tab.number("none")) == (2, -1, -1, -1)
    assert tab.number("long") == -1
    assert (tab.text("text"), tab.text("list"), tab.text("none")) == ("x", "[1]", "")
