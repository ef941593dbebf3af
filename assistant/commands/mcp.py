"""`mcp`: Sequitur as a tool of other programs, over standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer

from assistant.api.answers import Answers
from assistant.api.mcp import server
from assistant.chat import Chat
from assistant.commands.common import Backend, DataDir, Model, SettingsFile, settings_of, usual_choices
from assistant.commands.ending import at_end
from assistant.parts import Loader
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.shared import Leases
from assistant.store.users import ME
from assistant.web.runs import Runs
from ptkb.store import Ptkb


def mcp(
    user: Annotated[str, typer.Option(help="Whose facts and documents are used.")] = ME,
    model: Model = None,
    backend: Backend = None,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Answer programs that speak the Model Context Protocol, with one tool, `ask`; they start this command."""
    usual = settings_of(settings, data_dir, model=model, backend=backend)
    engine, loader = connect(usual.database_url), Loader(usual)
    runs = Runs(shared=Leases(engine))
    at_end(loader.close)
    at_end(runs.close)
    chat = Chat(Conversations(engine), Ptkb(engine), loader)
    choices = usual_choices(usual)
    # loading begins once standard output is put aside for the protocol, so that nothing else writes there
    server(Answers(chat, runs, lambda _: choices), user, loader.start).run()
