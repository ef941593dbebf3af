"""`models servers`: the servers of language models that people added, as in the Model tab of the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated

import typer
from pydantic import SecretStr, ValidationError

from assistant.commands.common import print_table, say, talk
from assistant.commands.option_groups import Group, SettingsOptions
from assistant.errors import ModelError
from assistant.llm.known_models import AddedServer, KnownModels
from assistant.llm.load import AUTO
from assistant.settings import MIN_CONTEXT

app = Group(help="List, test, add and remove servers whose models the page offers.", no_args_is_help=True)
Address = Annotated[str, typer.Argument(help="Where the server is, such as http://127.0.0.1:11434.")]
ServedModel = Annotated[str, typer.Option("--model", help="One of its models; left out where it has one.")]
Key = Annotated[bool, typer.Option("--key", help="Ask for the key that it wants to be shown.")]
Context = Annotated[
    int | None,
    typer.Option(min=MIN_CONTEXT, help="Tokens a request; left out, the server tells."),
]


@app.command("list")
def list_(options: SettingsOptions) -> None:
    """List the servers that were added."""
    rows = (
        (one.id, one.llm.model, one.llm.server, "kept" if one.llm.api_key.get_secret_value() else "none")
        for one in _known(options).added()
    )
    print_table(("id", "model", "address", "key"), rows)


def _of_a_server(act: Callable[[KnownModels, AddedServer], None]) -> Callable[..., None]:
    """The command that does this with what is known and the server that its options name."""

    def command(
        address: Address,
        model: ServedModel = AUTO,
        key: Key = False,
        context: Context = None,
        *,
        options: SettingsOptions,
    ) -> None:
        act(_known(options), _server(address, model, key, context))

    command.__doc__ = act.__doc__
    return command


@app.command("test")
@_of_a_server
def try_(known: KnownModels, server: AddedServer) -> None:
    """Say what a server can do, or why it can't be used; nothing is kept."""
    from assistant.llm.servers.probe import probe  # noqa: PLC0415 - takes a second to import

    probed = asyncio.run(probe(known.of_server(server).llm))
    if not probed.abilities:
        models = f" ({', '.join(probed.models)})" if len(probed.models) > 1 else ""
        raise ModelError(f"{probed.reason}{models}")
    can = probed.abilities
    say(f"{probed.kind} answers with {probed.model}.")
    say(f"Context: {can.context:,} tokens a request. Streams: {'yes' if can.stream else 'no'}.")
    say(f"Yes or no by probability: {can.choose}.")
    say(f"Tells how likely a text is: {'yes' if can.score else 'no'}.")
    if can.unopened:
        say("Thinks before it replies: yes, which is left out.")
    say(f"A stop ends its work: {'yes' if can.cancel else 'not known'}.")


@app.command("add")
@_of_a_server
def add(known: KnownModels, server: AddedServer) -> None:
    """Keep a model of a server, for the page to offer; one that was added before is replaced."""
    say(f"{known.add(asyncio.run(known.titled(server))).title} was added.", talk)


@app.command()
def remove(
    id_: Annotated[str, typer.Argument(metavar="ID", help="Its id, as `models servers list` shows it.")],
    *,
    options: SettingsOptions,
) -> None:
    """Forget a model of a server, and its key."""
    _known(options).remove(id_)
    talk.print("It was removed.")


def _server(address: str, model: str, key: bool, context: int | None) -> AddedServer:
    secret = SecretStr(typer.prompt("Key", hide_input=True, err=True)) if key else SecretStr("")
    try:
        return AddedServer(address=address, model=model, key=secret, context=context)
    except ValidationError as error:
        raise ModelError("A name or a key has 500 characters at most; check what was pasted.") from error


def _known(options: SettingsOptions) -> KnownModels:
    return KnownModels(options.load_settings())
