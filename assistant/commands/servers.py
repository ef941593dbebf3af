"""`models servers`: the servers of language models that people added, as in the Model tab of the page."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

import typer
from pydantic import SecretStr, ValidationError

from assistant.commands.common import error_console, print_table, print_text, prompt_secret
from assistant.commands.option_groups import Group, SettingsOptions
from assistant.errors import ModelError
from assistant.llm.known_models import AddedServer, KnownModels
from assistant.llm.load import AUTO
from assistant.settings import MIN_CONTEXT

app = Group(help="List, test, add and remove servers whose models the page offers.", no_args_is_help=True)


@dataclass(frozen=True)
class ServerArguments:
    """A server and a model of it, as they are typed."""

    address: Annotated[str, typer.Argument(help="Where the server is, such as http://127.0.0.1:11434.")]
    model: Annotated[str, typer.Option("--model", help="One of its models; not needed if it has only one.")] = AUTO
    key: Annotated[
        bool, typer.Option("--key", help="Ask for the API key of the server, which is then typed unseen.")
    ] = False
    context: Annotated[
        int | None,
        typer.Option(min=MIN_CONTEXT, help="Tokens that a request may use; by default what the server tells."),
    ] = None

    def server(self) -> AddedServer:
        """The server, with its key, which is asked for here.

        Raises:
            ModelError: a name or the key is too long.
            SettingsError: no key was typed.
        """
        secret = SecretStr(prompt_secret("Key")) if self.key else SecretStr("")
        try:
            return AddedServer(address=self.address, model=self.model, key=secret, context=self.context)
        except ValidationError as error:
            raise ModelError("A name or a key has 500 characters at most; check what was pasted.") from error


@app.command("list")
def list_(options: SettingsOptions) -> None:
    """List the servers that were added."""
    rows = (
        (server.id, server.llm.model, server.llm.server, "kept" if server.llm.api_key.get_secret_value() else "none")
        for server in _known_models(options).added()
    )
    print_table(("id", "model", "address", "key"), rows)


@app.command("test")
def try_(served: ServerArguments, options: SettingsOptions) -> None:
    """Say what a server can do, or why it can't be used; nothing is stored."""
    from assistant.llm.servers.probe import probe  # noqa: PLC0415 - takes a second to import

    probed = asyncio.run(probe(_known_models(options).of_server(served.server()).llm))
    if not probed.abilities:
        models = f" ({', '.join(probed.models)})" if len(probed.models) > 1 else ""
        raise ModelError(f"{probed.reason}{models}")
    abilities = probed.abilities
    print_text(f"{probed.kind} answers with {probed.model}.")
    print_text(f"Context: {abilities.context:,} tokens a request. Streams: {'yes' if abilities.stream else 'no'}.")
    print_text(f"Yes or no by probability: {abilities.choose}.")
    print_text(f"Tells how likely a text is: {'yes' if abilities.score else 'no'}.")
    if abilities.unopened:
        print_text("Thinks before it replies: yes, which is left out.")
    print_text(f"A stop ends its work: {'yes' if abilities.cancel else 'not known'}.")


@app.command()
def add(served: ServerArguments, options: SettingsOptions) -> None:
    """Store a model of a server, which the page then offers; the same one, added before, is replaced."""
    known_models = _known_models(options)
    print_text(f"{known_models.add(asyncio.run(known_models.titled(served.server()))).title} was added.", error_console)


@app.command()
def remove(
    id_: Annotated[str, typer.Argument(metavar="ID", help="Its id, as `models servers list` shows it.")],
    *,
    options: SettingsOptions,
) -> None:
    """Forget a model of a server, and its key."""
    _known_models(options).remove(id_)
    error_console.print("It was removed.")


def _known_models(options: SettingsOptions) -> KnownModels:
    return KnownModels(options.load_settings())
