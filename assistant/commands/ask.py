"""`ask` and `chat`: the turn on the command line."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Annotated

import typer
from rich.live import Live
from rich.markdown import Markdown
from rich.markup import escape
from rich.padding import Padding

from assistant import turn as flow
from assistant.chat import exchanges
from assistant.commands.common import Backend, DataDir, Model, Searched, SettingsFile, out, ready, settings_of, talk
from assistant.errors import SequiturError
from assistant.parts import Loader
from assistant.settings import Below, Settings
from assistant.types import Choices, Fact, Turn, new_id, now
from assistant.views import as_json, events, headline, instead, passed_over, sources
from ptkb.store import validated

Facts = Annotated[list[str] | None, typer.Option("--fact", help="Something about you; may be repeated.")]
Strategy = Annotated[str | None, typer.Option(help="How the answer is made from the passages.")]
Loop = Annotated[str | None, typer.Option(help="How the passages are found.")]
K = Annotated[int | None, typer.Option("--k", min=1, max=20, help="Passages shown to the model.")]
Library = Annotated[str | None, typer.Option(help="The library to answer from.")]
Under = Annotated[
    Below | None, typer.Option(help="What happens where no passage seems to answer, as in relevance.below.")
]


def ask(  # noqa: PLR0913, PLR0917 - one parameter an option
    question: Annotated[str, typer.Argument(help="What you want to know.")],
    fact: Facts = None,
    loop: Loop = None,
    strategy: Strategy = None,
    k: K = None,
    library: Library = None,
    retriever: Searched = None,
    below: Under = None,
    as_data: Annotated[bool, typer.Option("--json", help="Print the turn as JSON.")] = False,
    model: Model = None,
    backend: Backend = None,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Ask one question and print the answer with its sources."""
    usual = settings_of(settings, data_dir, model=model, backend=backend, retriever=retriever, library=library)
    question = flow.accepted(question, usual.turn.utterance_chars)
    choices = _choices(usual, loop, strategy, k, below)
    turn = Turn(question, known=_facts(fact or []), choices=choices)
    turn = _answered(turn, ready(usual), quiet=as_data)
    if as_data:
        out.print_json(json.dumps(as_json(turn)))
    else:
        _show_sources(turn)
    if turn.status == "failed":
        raise SequiturError(turn.error)


def chat(  # noqa: PLR0913, PLR0917 - one parameter an option
    fact: Facts = None,
    loop: Loop = None,
    strategy: Strategy = None,
    k: K = None,
    library: Library = None,
    retriever: Searched = None,
    below: Under = None,
    model: Model = None,
    backend: Backend = None,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Talk in the terminal; an empty line or Ctrl-D ends it, Ctrl-C stops an answer."""
    usual = settings_of(settings, data_dir, model=model, backend=backend, retriever=retriever, library=library)
    choices, known = _choices(usual, loop, strategy, k, below), _facts(fact or [])
    loader = ready(usual)
    turns: list[Turn] = []
    talk.print("Ask away; an empty line ends the conversation.", style="dim")
    for utterance in _lines():
        try:
            turn = _answered(Turn(utterance, exchanges(turns), known, choices), loader)
        except SequiturError as error:
            talk.print(str(error), style="red", markup=False)
            continue
        _show_sources(turn)
        if turn.status == "failed":
            talk.print(turn.error, style="red", markup=False)
        turns.append(turn)


def _choices(usual: Settings, loop: str | None, strategy: str | None, k: int | None, below: Below | None) -> Choices:
    """What was asked for, else the settings' choice; a loop or strategy that is none is told before anything loads."""
    loop = loop or usual.turn.loop
    choices = Choices(
        strategy or usual.turn.strategy,
        loop,
        k or usual.retrieve.k_for(loop),
        usual.library,
        retriever=usual.retrieve.retriever,
        below=below or "",
    )
    flow.asked(Turn("", choices=choices))
    return choices


def _facts(texts: Sequence[str]) -> tuple[Fact, ...]:
    return tuple(Fact(new_id(), validated(text), now(), now()) for text in texts)


def _lines() -> Iterator[str]:
    while True:
        try:
            line = out.input("[bold]> [/bold]").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if not line:
            return
        yield line


def _answered(turn: Turn, loader: Loader, quiet: bool = False) -> Turn:
    stop = Event()
    with _stopping(stop), Live(console=talk if quiet else out, refresh_per_second=8, transient=quiet) as live:
        parts = loader.parts("me", turn.choices)
        for turn in flow.run(turn, parts, stop):
            text = turn.answer.text if turn.answer else ""
            live.update(Markdown(text) if text and not quiet else headline(turn))
    return turn


@contextmanager
def _stopping(stop: Event) -> Iterator[None]:
    """Ctrl-C stops the answer, not the program."""
    before = signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _show_sources(turn: Turn) -> None:
    for source in sources(turn):
        title = f"[bold]{escape(source.title)}[/bold]{', says a part' if source.partly else ''}"
        out.print(Padding(f"\\[{source.n}] {title}: {escape(source.quote)}", (0, 0, 0, 2)))
    for sentence in turn.sentences:
        if sentence.state == "not" and instead(turn) != "own":
            out.print(Padding(f"Not found in the sources: {escape(sentence.text)}", (0, 0, 0, 2)), style="dim")
    if turn.own_answer:
        out.print(Padding(f"The model's own knowledge, without a source: {escape(turn.own_answer)}", (0, 0, 0, 2)))
    for event in events(turn):
        out.print(Padding(escape(event), (0, 0, 0, 2)), style="dim")
    if turn.confidence:
        low = ", which counts as not in the library" if turn.confidence.level == "none" else ""
        out.print(f"  Chance that a passage answers this: {turn.confidence.value:.0%}{low}.", style="dim")
    if passed_over(turn):
        found = ", ".join(dict.fromkeys(passage.title or passage.id for passage in turn.passages))
        out.print(f"  Found, but not used: {escape(found)}.", style="dim")
        out.print("  --below answer makes an answer from that, --below own from what the model knows.", style="dim")
    out.print(f"  {headline(turn)}", style="dim")
