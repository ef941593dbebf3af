"""`ask` and `chat`: questions and conversations on the command line."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import Annotated

from rich.live import Live
from rich.markdown import Markdown
from rich.markup import escape
from rich.padding import Padding
from typer import Argument, Option

from assistant import turn as flow
from assistant.chat import addressed, exchanges, unanswered, within
from assistant.commands.common import error_console, load_with_bars, output_console
from assistant.commands.option_groups import ModelOptions
from assistant.commands.turn_options import TurnOptions
from assistant.errors import LibraryError, SequiturError
from assistant.library.collections import library_of
from assistant.parts import Loader
from assistant.settings import IfUnanswerable, RetrieverName, Settings
from assistant.store.database import connect
from assistant.types import Fact, Turn, new_id, now
from assistant.wording.replies import reply
from assistant.wording.views import as_json, events, headline, passed_over, sources, unsourced_kind, wait_progress
from ptkb.store import Ptkb, comparison_key, validated

COMMAND_LINE_SOURCE = "command line"


@dataclass(frozen=True)
class AskOptions(TurnOptions):
    """The options of a turn on the command line."""

    fact: Annotated[tuple[str, ...], Option("--fact", help="Something about you; may be repeated.")] = ()
    temporary: Annotated[bool, Option("--temporary", help="Read no stored facts, and offer none to remember.")] = False
    library: Annotated[str | None, Option(help="The library to answer from.")] = None
    collection: Annotated[
        str | None, Option(help="A collection of your own documents to answer from, in place of a library.")
    ] = None
    retriever: Annotated[
        RetrieverName | None,
        Option(
            help="How passages are searched: by words (bm25), by meaning (dense), or both (hybrid).",
            show_default="hybrid",
        ),
    ] = None
    if_unanswerable: Annotated[
        IfUnanswerable | None,
        Option(help="What happens where no passage seems to answer, as in relevance.if_unanswerable."),
    ] = None

    def merged_settings(self, options: ModelOptions) -> Settings:
        """The settings, with these options on top."""
        return options.load_settings(retrieve={"retriever": self.retriever}, library=self.library)

    def turn_factory(self, settings: Settings) -> Callable[..., Turn]:
        """A function that begins a turn from an utterance and the turns before it, with the chosen options and facts.

        A missing collection is reported before anything is loaded.
        """
        choices = self.choices(settings, below=self.if_unanswerable or "")
        if self.collection and self.library:
            raise LibraryError("Give --collection or --library, not both.")
        if self.collection:
            choices = within(choices, library_of(self.collection, "me", settings), settings)
        facts = _personal_facts(settings, self.fact, self.temporary)

        def begin_turn(utterance: str, earlier_turns: Sequence[Turn] = ()) -> Turn:
            collection = earlier_turns[-1].choices.collection if earlier_turns else ""
            message, turn_choices = addressed(utterance, "me", choices, collection, settings)
            turn = Turn(message, exchanges(earlier_turns), facts, turn_choices, temporary=self.temporary)
            return replace(turn, unanswered=unanswered(earlier_turns))

        return begin_turn


def ask(
    question: Annotated[str, Argument(help="What you want to know.")],
    *,
    ask_options: AskOptions,
    as_data: Annotated[bool, Option("--json", help="Print the turn as JSON.")] = False,
    options: ModelOptions,
) -> None:
    """Ask one question and print the answer with its sources."""
    settings = ask_options.merged_settings(options)
    question = flow.accepted(question, settings.turn.max_utterance_chars)
    turn = ask_options.turn_factory(settings)(question)
    finish(run(turn, load_with_bars(settings), quiet=as_data), as_data)


def chat(*, ask_options: AskOptions, options: ModelOptions) -> None:
    """Talk in the terminal; an empty line or Ctrl-D ends it, Ctrl-C stops an answer."""
    settings = ask_options.merged_settings(options)
    begin_turn = ask_options.turn_factory(settings)
    loader = load_with_bars(settings)
    turns: list[Turn] = []
    if ask_options.temporary:
        error_console.print("Temporary chat: none of your stored facts are read, and nothing is kept.", style="dim")
    error_console.print("Ask away; an empty line ends the conversation.", style="dim")
    for utterance in _lines():
        try:
            turn = run(begin_turn(utterance, turns), loader)
        except SequiturError as error:
            error_console.print(str(error), style="red", markup=False)
            continue
        show_sources(turn)
        if turn.status == "failed":
            error_console.print(turn.error, style="red", markup=False)
        turns.append(turn)


def _personal_facts(options: Settings, texts: Sequence[str], temporary: bool) -> tuple[Fact, ...]:
    """The person's facts: the stored ones, unless the chat is temporary, and those of the command line."""
    stored = () if temporary else tuple(Ptkb(connect(options.database_url)).facts("me"))
    stored_keys = {comparison_key(fact.text) for fact in stored}
    typed_facts = (Fact(new_id(), validated(text), now(), now(), COMMAND_LINE_SOURCE) for text in texts)
    return (*stored, *(fact for fact in typed_facts if comparison_key(fact.text) not in stored_keys))


def _lines() -> Iterator[str]:
    with suppress(EOFError, KeyboardInterrupt):
        while line := output_console.input("[bold]> [/bold]").strip():
            yield line


def run(turn: Turn, loader: Loader, quiet: bool = False) -> Turn:
    """Run a turn and show it as it grows; where it is `quiet`, only what it is doing, on the error stream."""
    stop = Event()
    with (
        _stopping(stop),
        Live(console=error_console if quiet else output_console, refresh_per_second=8, transient=quiet) as live,
    ):
        for turn in flow.run(turn, loader.parts("me", turn.choices), stop):
            live.update(_headline(turn) if quiet else _reply(turn))
    return turn


def finish(turn: Turn, as_data: bool) -> None:
    """Print a finished turn as JSON, or its sources below its reply.

    Raises:
        SequiturError: the turn failed.
    """
    if as_data:
        output_console.print_json(json.dumps(as_json(turn)))
    else:
        show_sources(turn)
    if turn.status == "failed":
        raise SequiturError(turn.error)


def _reply(turn: Turn) -> Markdown | str:
    """The reply so far; of work on whole documents also how far it is."""
    text = reply(turn.answer)
    if turn.work:
        return Markdown(f"{text}\n\n{wait_progress(turn)}")
    return Markdown(text) if text else headline(turn)


def _headline(turn: Turn) -> str:
    return f"{headline(turn)} {wait_progress(turn)}" if turn.work else headline(turn)


@contextmanager
def _stopping(stop: Event) -> Iterator[None]:
    """Ctrl-C stops the answer, not the program."""
    previous_handler = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def show_sources(turn: Turn) -> None:
    """Print the sources of a reply, what was left out of it, and what happened in its turn."""
    for source in sources(turn):
        title = f"[bold]{escape(source.title)}[/bold]{', says a part' if source.partly else ''}"
        output_console.print(Padding(f"\\[{source.n}] {title}: {escape(source.quote)}", (0, 0, 0, 2)))
    for sentence in turn.sentences:
        if sentence.state == "not" and unsourced_kind(turn) != "own":
            output_console.print(
                Padding(f"Not found in the sources: {escape(sentence.text)}", (0, 0, 0, 2)), style="dim"
            )
    for omitted in turn.left_out:
        line = f"Left out, since you told me “{escape(omitted.fact)}”: {escape(omitted.text)}"
        output_console.print(Padding(line, (0, 0, 0, 2)), style="dim")
    if turn.own_answer:
        output_console.print(
            Padding(f"The model's own knowledge, without a source: {escape(turn.own_answer)}", (0, 0, 0, 2))
        )
    _show_listed(turn)
    for event in events(turn):
        output_console.print(Padding(escape(event), (0, 0, 0, 2)), style="dim")
    if turn.confidence:
        level_note = ", which counts as not in the library" if turn.confidence.level == "none" else ""
        output_console.print(
            f"  Chance that a passage answers this: {turn.confidence.value:.0%}{level_note}.", style="dim"
        )
    if passed_over(turn):
        titles = ", ".join(dict.fromkeys(passage.full_title or passage.id for passage in turn.passages))
        output_console.print(f"  Found, but not used: {escape(titles)}.", style="dim")
        output_console.print(
            "  --if-unanswerable answer makes an answer from that, --if-unanswerable own from what the model knows.",
            style="dim",
        )
    output_console.print(f"  {headline(turn)}", style="dim")


def _show_listed(turn: Turn) -> None:
    """Print the commands that change the facts which a reply lists, in place of the page's buttons."""
    stored = [fact for fact in turn.listed if fact.source != COMMAND_LINE_SOURCE]
    if stored:
        output_console.print(
            "  To forget one: python -m assistant facts remove ID; to correct it: facts edit ID TEXT.", style="dim"
        )
    for fact in stored:
        output_console.print(Padding(f"{fact.id}  {escape(fact.text)}", (0, 0, 0, 2)), style="dim")
    if len(stored) < len(turn.listed):
        output_console.print(
            "  What came with --fact is known for this run only; leave it out to forget it.", style="dim"
        )
