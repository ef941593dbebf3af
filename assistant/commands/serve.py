"""`serve`, and `python app.py`: the page."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from assistant.commands.common import error_console, print_text, show_loading
from assistant.commands.exit_status import USER_ERROR, at_end
from assistant.commands.logs import write_logs
from assistant.commands.option_groups import Group, ModelOptions
from assistant.commands.turn_options import TurnOptions
from assistant.errors import SequiturError
from assistant.llm.known_models import KnownModels
from assistant.parts import Loader
from assistant.settings import Settings

if TYPE_CHECKING:
    from assistant.web.folder import FollowedFolder
    from assistant.web.server import Server

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - what --share-lan asks for; logins are then required


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free one.", show_default="7860")
    ] = None,
    share_lan: Annotated[bool, typer.Option("--share-lan", help="Let other computers in; needs logins.")] = False,
    *,
    options: ModelOptions,
) -> None:
    """Serve Sequitur's page, and load the models meanwhile."""
    _serve(options.load_settings(web={"host": ALL_ADDRESSES if share_lan else host, "port": port}))


def main() -> None:
    """Serve as the command line says; an error that a person can mend is one sentence and exit code 2."""
    app = Group(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(serve)
    try:
        app()
    except SequiturError as error:
        error_console.print(str(error), style="red", markup=False)
        sys.exit(USER_ERROR)


def _serve(settings: Settings) -> None:
    from assistant.web.server import furnish, serve  # noqa: PLC0415 - gradio takes seconds to import

    write_logs(settings.log)
    TurnOptions().choices(settings)  # refuses a loop or a strategy that there is not before anybody asks
    loader = Loader(settings, KnownModels(settings).at_start())
    at_end(loader.close)
    house, logins = furnish(settings, loader)
    server = serve(house, logins)
    error_console.print(f"Sequitur is at [bold]{server.url}[/bold] (Ctrl-C ends it).")
    loader.start()
    _follow(house.followed)
    threading.Thread(target=_show_loading, args=(loader,), daemon=True).start()
    serve_until_stopped(server)


def serve_until_stopped(server: Server) -> None:
    """Serve until the process is told to end. SIGTERM lets the answers being written end first; a second one doesn't.

    Ctrl-C stops them at once; what there is of them is kept.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        server.wait()
    except SystemExit:
        error_console.print("Sequitur ends as soon as the answers being written are done.")
        server.drain()
        raise
    finally:
        server.close()


def _follow(followed: FollowedFolder | None) -> None:
    """Follow the folder that was chosen; one that can't be is told, and the page is there all the same."""
    try:
        if followed:
            followed.start()
    except SequiturError as error:
        error_console.print(str(error), style="red", markup=False)


def _show_loading(loader: Loader) -> None:
    """Bars on the terminal while things are being loaded; a failure is told there and on the page."""
    try:
        show_loading(loader)
        print_text(" ".join(filter(None, ("Ready.", loader.notice, loader.judges))), error_console)
        loader.models.measure()
    except SequiturError as error:
        error_console.print(str(error), style="red", markup=False)
