"""`users`: who may log in to a page that other computers can reach, and the tokens of users' programs."""

from __future__ import annotations

from typing import Annotated

import typer

from assistant.commands.common import error_console, print_table, print_text, prompt_secret
from assistant.commands.option_groups import Group, SettingsOptions
from assistant.errors import SettingsError
from assistant.store.database import connect
from assistant.store.tokens import AccessTokens
from assistant.store.usage import Usage
from assistant.store.users import DEFAULT_USER, Logins, checked_name, checked_password, composed_name, hash_password
from assistant.upkeep.accounts import Account, Accounts

app = Group(help="Logins for a page that other computers can reach, and tokens for programs.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The user's name, as it is typed to log in.")]


@app.command()
def add(name: Name, options: SettingsOptions) -> None:
    """Let a user log in, or change a password, which ends log-ins with the old one; asks for the password twice.

    A password has 12 characters at least.
    """
    logins, name = _logins(options), checked_name(name)
    logins.add(name, _password(name))
    print_text(f"{name} can log in now.", error_console)


@app.command("list")
def list_(options: SettingsOptions) -> None:
    """List who may log in."""
    for name in _logins(options).names():
        print_text(name)


@app.command()
def remove(
    name: Annotated[
        str, typer.Argument(help=f"Whose account: a user's, or '{DEFAULT_USER}' on a page without logins.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    *,
    options: SettingsOptions,
) -> None:
    """Delete a user's account: login, tokens, facts, conversations, documents; asks first.

    A page that is up logs the user out. Backups keep what they hold.
    """
    settings = options.load_settings()
    accounts = Accounts(settings, connect(settings.database_url))
    account = accounts.of(name)
    if account and not yes:
        _confirm(name, account)
    note = accounts.delete(name)
    print_text(f"The account of {name} is deleted with all that was its own. {note}".strip(), error_console)


@app.command()
def token(
    name: Annotated[str, typer.Argument(help=f"Whose token: a user, or '{DEFAULT_USER}' on a page without logins.")],
    label: Annotated[str, typer.Option(help="What the token is for.")] = "",
    list_: Annotated[bool, typer.Option("--list", help="List the user's tokens instead.")] = False,
    revoke: Annotated[str | None, typer.Option(metavar="ID", help="Revoke this token instead.")] = None,
    *,
    options: SettingsOptions,
) -> None:
    """Make a token with which a user's programs can ask the API, and print it; it can't be shown again."""
    name, tokens = composed_name(name), AccessTokens(connect(options.load_settings().database_url))
    if revoke is not None:
        tokens.revoke(name, revoke)
        print_text(f"The token {revoke} lets nobody in any more.", error_console)
    elif list_:
        rows = ((entry.id, entry.label, entry.created[:16], entry.used[:16] or "never") for entry in tokens.list(name))
        print_table(("id", "label", "created", "last used"), rows)
    else:
        if name not in _logins(options).users():
            raise SettingsError(f"The page serves no user '{name}'; `users list` shows who there is.")
        typer.echo(tokens.make(name, label))
        error_console.print("Keep it: it can't be shown again.")


@app.command()
def usage(
    days: Annotated[int, typer.Option(min=1, help="For how many days, today included (UTC).")] = 30,
    *,
    options: SettingsOptions,
) -> None:
    """Show how much each user of the page has used: turns, tokens and seconds; nothing of what was said."""
    heads = ("user", "turns", "tokens read", "written", "seconds", "last")
    rows = (
        (used.user, f"{used.turns:,}", f"{used.read:,}", f"{used.written:,}", f"{used.seconds:,.0f}", used.last)
        for used in Usage(connect(options.load_settings().database_url)).of_all(days)
    )
    print_table(heads, rows)


@app.command("hash")
def hash_() -> None:
    """Print a password's hash, for the setting web.logins."""
    typer.echo(hash_password(_password()))


def _confirm(name: str, account: Account) -> None:
    contents = f"{account.facts} facts, {account.conversations} conversations, {account.tokens} tokens"
    documents = " and all documents" if account.documents else ""
    try:
        is_confirmed = typer.confirm(f"Delete the account of {name} with {contents}{documents}, for good?", err=True)
    except typer.Abort:
        is_confirmed = False
    if not is_confirmed:
        raise SettingsError("Nothing was deleted; answer y, or give --yes where nobody can be asked.")


def _password(name: str = "") -> str:
    return checked_password(prompt_secret("Password", "The same again"), name)


def _logins(options: SettingsOptions) -> Logins:
    settings = options.load_settings()
    return Logins(connect(settings.database_url), settings.web.logins)
