"""`users`: who may log in to a page that other computers can reach."""

from __future__ import annotations

from typing import Annotated

import typer

from assistant.commands.common import DataDir, SettingsFile, out, settings_of, talk
from assistant.store.database import connect
from assistant.store.users import Logins, checked_name, checked_password, hash_password

app = typer.Typer(help="Logins for a page that other computers can reach.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The user's name, as it is typed to log in.")]


@app.command()
def add(name: Name, settings: SettingsFile = None, data_dir: DataDir = None) -> None:
    """Let a user log in, or change a password, which ends log-ins with the old one; asks for the password twice."""
    logins = _logins(settings, data_dir)
    name = logins.add(checked_name(name), _password())
    talk.print(f"{name} can log in now.", markup=False)


@app.command("list")
def list_(settings: SettingsFile = None, data_dir: DataDir = None) -> None:
    """List who may log in."""
    for name in _logins(settings, data_dir).names():
        out.print(name, markup=False, highlight=False)


@app.command()
def remove(name: Name, settings: SettingsFile = None, data_dir: DataDir = None) -> None:
    """Let a user log in no more, and end the user's log-ins; conversations and facts stay."""
    _logins(settings, data_dir).remove(name)
    talk.print(f"{name} can't log in any more, and is logged out.", markup=False)


@app.command("hash")
def hash_() -> None:
    """Print a password's hash, for the setting web.logins."""
    typer.echo(hash_password(_password()))


def _password() -> str:
    password: str = typer.prompt("Password", hide_input=True, confirmation_prompt="The same again", err=True)
    return checked_password(password)


def _logins(settings: SettingsFile, data_dir: DataDir) -> Logins:
    chosen = settings_of(settings, data_dir)
    return Logins(connect(chosen.database_url), chosen.web.logins)
