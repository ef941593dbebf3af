"""`bench memory`: how much memory the process holds after so many turns, each a run of its own as on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Annotated

import typer

from assistant.chat import Chat
from assistant.commands.common import Model, ready, talk
from assistant.commands.experiment import ModelMeasurementOptions, show
from assistant.commands.turn_options import TurnOptions
from assistant.errors import SequiturError
from assistant.parts import Loader
from assistant.runs import Runs
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.types import Choices, Turn
from benchmarks.peak import held_bytes
from benchmarks.turn import QUESTIONS
from ptkb.store import Ptkb

# Each of these about each country gives more questions than any run asks, no two alike.
ASKED = (
    "Which languages are spoken in {}?",
    "What does {} export?",
    "How many people live in {}?",
    "What is the climate of {}?",
)
EACH = 10  # turns of a conversation
USER = "me"
GLANCE = 1.0  # seconds between two looks at an answer


def questions() -> Iterator[str]:
    """Different questions, the twelve of `bench turn` first."""
    from assistant.library.factbook import countries  # noqa: PLC0415 - reads the whole book

    first = [question for question, _ in QUESTIONS]
    yield from first
    rest = (asked.format(country.name) for country in countries() for asked in ASKED)
    yield from (question for question in rest if question not in first)


def held_after(
    turns: Sequence[int], loader: Loader, choices: Choices, folder: Path, each: Callable[[int, Turn], None]
) -> dict[int, float]:
    """GB (10^9 bytes) that this process holds after each of these numbers of turns.

    Conversations are kept in `folder`; `each` sees every turn with its number.

    Raises:
        SequiturError: a turn failed.
    """
    database = connect(f"sqlite:///{folder / 'bench.sqlite3'}")
    conversations, runs = Conversations(database), Runs()
    chat, held = Chat(conversations, Ptkb(database), loader), dict[int, float]()
    place = ""
    for n, question in zip(count(1), islice(cycle(questions()), max(turns)), strict=False):
        if n % EACH == 1:
            place = conversations.new(USER).id

        def answering(stop: Event, place: str = place, question: str = question) -> Iterator[Turn]:
            return chat.ask(USER, place, question, choices, stop)

        run = runs.start(USER, place, answering)
        while not run.over:
            run.look()  # as an open page does: an answer that nobody watches is stopped after a minute
            run.join(GLANCE)
        if run.turn.error:
            raise SequiturError(run.turn.error)
        each(n, run.turn)
        if n in turns:
            held[n] = held_bytes() / 1e9
    return held


TURNS = (20, 50, 100, 200)


@dataclass(frozen=True)
class Small(ModelMeasurementOptions):
    """The usual options, with a small model where none is named: what is measured is all around it."""

    model: Model = "smollm2-135m"


def memory(
    turns: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Look after so many turns; may be repeated.", show_default="20 to 200"),
    ] = None,
    *,
    options: Small,
) -> None:
    """Ask as the page does, up to 200 different questions, and tell what memory is held after 20, 50, 100 and all."""
    knobs = options.load_settings()
    loader = ready(knobs)
    choices = TurnOptions().choices(knobs)
    name = loader.parts("me", choices).llm.name
    with TemporaryDirectory() as folder:
        held = held_after(sorted(turns or TURNS), loader, choices, Path(folder), _tell)
    show({"model": name, "held_gb": held, "growth": held[max(held)] / held[min(held)] - 1}, options.as_json)


def _tell(n: int, turn: Turn) -> None:
    talk.print(f"{n:4} {turn.seconds:5.1f} s  {turn.status}  {turn.utterance}", style="dim", markup=False)
