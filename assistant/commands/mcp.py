"""`mcp`: Sequitur as a tool of other programs, over standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer

from assistant.api.answers import Answers
from assistant.api.mcp import server
from assistant.chat import Chat
from assistant.commands.exit_status import at_end
from assistant.commands.option_groups import ModelOptions
from assistant.commands.turn_options import TurnOptions
from assistant.parts import Loader
from assistant.runs import Runs
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.shared import Leases
from assistant.store.users import DEFAULT_USER
from ptkb.store import Ptkb


def mcp(
    user: Annotated[str, typer.Option(help="Whose facts and documents are used.")] = DEFAULT_USER,
    *,
    options: ModelOptions,
) -> None:
    """Answer programs that speak the Model Context Protocol, with one tool, `ask`; they start this command."""
    settings = options.load_settings()
    engine, loader = connect(settings.database_url), Loader(settings)
    runs = Runs(shared=Leases(engine), max_per_user=settings.limits.max_answers)
    at_end(loader.close)
    at_end(runs.close)
    chat = Chat(Conversations(engine), Ptkb(engine), loader)
    choices = TurnOptions().choices(settings)
    # loading begins once standard output is put aside for the protocol, so that nothing else writes there
    server(Answers(chat, runs, lambda _: choices), user, loader.start).run()
