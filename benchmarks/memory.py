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
from assistant.commands.common import Model, error_console, load_with_bars
from assistant.commands.experiment import ModelMeasurementOptions, print_summary
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
QUESTION_TEMPLATES = (
    "Which languages are spoken in {}?",
    "What does {} export?",
    "How many people live in {}?",
    "What is the climate of {}?",
)
TURNS_PER_CONVERSATION = 10
USER = "me"
GLANCE = 1.0  # seconds between two looks at an answer


def questions() -> Iterator[str]:
    """Different questions, the twelve of `bench turn` first."""
    from assistant.library.factbook import countries  # noqa: PLC0415 - reads the whole book

    first_questions = [question for question, _ in QUESTIONS]
    yield from first_questions
    country_questions = (template.format(country.name) for country in countries() for template in QUESTION_TEMPLATES)
    yield from (question for question in country_questions if question not in first_questions)


def memory_after_turns(
    turns: Sequence[int], loader: Loader, choices: Choices, folder: Path, each: Callable[[int, Turn], None]
) -> dict[int, float]:
    """GB (10^9 bytes) that this process holds after each of these numbers of turns.

    Conversations are kept in `folder`; `each` sees every turn with its number.

    Raises:
        SequiturError: a turn failed.
    """
    database = connect(f"sqlite:///{folder / 'bench.sqlite3'}")
    conversations, runs = Conversations(database), Runs()
    chat, held_gb = Chat(conversations, Ptkb(database), loader), dict[int, float]()
    conversation_id = ""
    for n, question in zip(count(1), islice(cycle(questions()), max(turns)), strict=False):
        if n % TURNS_PER_CONVERSATION == 1:
            conversation_id = conversations.new(USER).id

        def answering(stop: Event, conversation_id: str = conversation_id, question: str = question) -> Iterator[Turn]:
            return chat.ask(USER, conversation_id, question, choices, stop)

        run = runs.start(USER, conversation_id, answering)
        while not run.over:
            run.mark_watched()  # as an open page does: an answer that nobody watches is stopped after a minute
            run.join(GLANCE)
        if run.turn.error:
            raise SequiturError(run.turn.error)
        each(n, run.turn)
        if n in turns:
            held_gb[n] = held_bytes() / 1e9
    return held_gb


TURNS = (20, 50, 100, 200)


@dataclass(frozen=True)
class Small(ModelMeasurementOptions):
    """The usual options, with a small model where none is named: what is measured is all around it."""

    model: Model = "smollm2-135m"


def memory(
    turns: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Measure after so many turns; may be repeated.", show_default="20 to 200"),
    ] = None,
    *,
    options: Small,
) -> None:
    """Ask as the page does, up to 200 different questions, and tell what memory is held after 20, 50, 100 and all."""
    settings = options.load_settings()
    loader = load_with_bars(settings)
    choices = TurnOptions().choices(settings)
    name = loader.parts("me", choices).llm.name
    with TemporaryDirectory() as folder:
        held_gb = memory_after_turns(sorted(turns or TURNS), loader, choices, Path(folder), _tell)
    print_summary(
        {"model": name, "held_gb": held_gb, "growth": held_gb[max(held_gb)] / held_gb[min(held_gb)] - 1},
        options.as_json,
    )


def _tell(n: int, turn: Turn) -> None:
    error_console.print(f"{n:4} {turn.seconds:5.1f} s  {turn.status}  {turn.utterance}", style="dim", markup=False)
