"""Serves the page: where it listens, who may log in, and how it ends."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
# Gradio's own figures of its events, which this page shows nowhere: after each event it would make a table of the last
# 10,000 and sort it.
os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "1")
os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(2**62))

import gradio as gr
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from assistant.api.answers import Answers
from assistant.api.completions import Completions
from assistant.chat import Chat
from assistant.errors import SequiturError, SettingsError
from assistant.parts import Loader
from assistant.runs import MAX_RUNS, Runs
from assistant.settings import Settings, WebSettings
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.sessions import Sessions
from assistant.store.shared import Leases
from assistant.store.tokens import AccessTokens
from assistant.store.usage import Usage
from assistant.store.users import DEFAULT_USER, Logins, composed_name
from assistant.upkeep.accounts import Accounts
from assistant.web.allowance import Allowance
from assistant.web.bodies import BodyLimits
from assistant.web.choices import UserChoices
from assistant.web.downloads import downloads
from assistant.web.entered import LoginTokens, user_of
from assistant.web.folder import FollowedFolder
from assistant.web.health import health, metrics_route
from assistant.web.library import OwnDocuments, mark_of
from assistant.web.logins import Addresses, Authenticator, shared_counts
from assistant.web.look import files, look
from assistant.web.metrics import Metrics
from assistant.web.owners import DOCUMENTS_MARK, LOGOUT, MARK, AccessGuard
from assistant.web.page import House, build
from assistant.web.searching import searching
from assistant.web.security import Guard, is_loopback
from assistant.web.streams import Streams
from ptkb.store import Ptkb

# Events of the page that may be under way at once. Each tab that watches an answer is one, for as long as that is
# written; with Gradio's 40, the 41st person would wait, for a click as well, until somebody's answer is over.
MOST_EVENTS, MOST_WAITING = 2 * MAX_RUNS, 64
# Gradio's form for logging in shows wrong passwords, but not that nothing is tried for now.
WAIT_AND_TRY = "After several wrong passwords nothing is tried for a while; wait, and try again."


@dataclass
class Server:
    """A page that is up. `url` is where."""

    page: gr.Blocks
    house: House
    url: str

    def wait(self) -> None:
        """Serve until the process is interrupted."""
        self.page.block_thread()

    def drain(self) -> None:
        """Let the answers being written come to their end, for as long as the settings say; nothing new begins."""
        self.house.runs.drain(self.house.settings.web.grace_seconds)

    def close(self) -> None:
        """Stop the answers being written, keep what there is of them, and stop serving."""
        self.house.runs.close()
        if self.house.followed:
            self.house.followed.close()
        self.page.close(verbose=False)


def furnish(settings: Settings, loader: Loader) -> tuple[House, Logins]:
    """The stores and the chat that the page is built on; models come from `loader` when it has them.

    Raises:
        SequiturError: the database can't be opened, or a login in the settings is malformed.
    """
    engine = connect(settings.database_url)
    conversations, ptkb = Conversations(engine), Ptkb(engine)
    metrics, usage = Metrics(), Usage(engine)
    metrics.show_readiness(lambda: loader.ready)
    chat = Chat(
        conversations, ptkb, metrics.source(loader, settings), (metrics.watch, Allowance(usage, settings.limits).watch)
    )
    choices = UserChoices(conversations, settings)
    logins = Logins(engine, settings.web.logins)

    def changed(user: str) -> None:
        loader.prepare(user, choices(user))

    documents = OwnDocuments(settings, changed)
    followed = FollowedFolder(
        settings, lambda user: user == DEFAULT_USER and not logins.names(), chat.arrivals, changed
    )
    house = House(
        settings=settings,
        chat=chat,
        conversations=conversations,
        ptkb=ptkb,
        documents=documents,
        loading=loader,
        runs=Runs(loader.models.line.ahead, Leases(engine), settings.limits.max_answers),
        tokens=AccessTokens(engine),
        accounts=Accounts(settings, engine, conversations),
        models=loader.models,
        may_switch=choosing(settings.web, logins),
        usage=usage,
        metrics=metrics,
        followed=followed,
    )
    return house, logins


def choosing(web: WebSettings, logins: Logins) -> Callable[[str], bool]:
    """Who may choose the model that answers: whom the settings name, or whoever is alone here, without logins."""
    admin_names = {composed_name(name) for name in web.admins}
    return lambda user: user in admin_names or (user == DEFAULT_USER and not logins.names())


def serve(house: House, logins: Logins) -> Server:
    """Bring the page up. Returns as soon as it answers.

    Raises:
        SettingsError: the port is in use, or other computers would reach a page that nobody needs to log in to.
    """
    web = house.settings.web
    local = is_loopback(web.host)
    if not local and not logins.names():
        raise SettingsError(
            "Other computers can reach this page, so people must log in: make a login with "
            "`python -m assistant users add NAME` first."
        )
    port = free_port(web)
    page = build(house)
    page.queue(api_open=False, max_size=MOST_WAITING, default_concurrency_limit=None)
    _app, url, _share = page.launch(
        server_name=f"[{web.host}]" if ":" in web.host else web.host,
        server_port=port,
        max_threads=MOST_EVENTS,
        **look(),
        **guarded(
            web,
            local,
            logins,
            house.streams,
            api(house, logins),
            downloads(house.documents),
            *searching(house),
            *marks(house),
            *health(house.loading, house.runs),
            metrics_route(house.metrics, web, logins),
        ),
    )
    page.limiter = None  # events that need a thread go on sharing the 40 that all requests have
    return Server(page, house, url.replace("0.0.0.0", lan_address()))  # noqa: S104 - only shown


def protected(app: ASGIApp, web: WebSettings, local: bool, streams: Streams) -> ASGIApp:
    """The app behind all that keeps strangers out, the first of it outermost."""
    app = AccessGuard(streams.counted(app))
    app = Addresses(BodyLimits(app, web.max_upload_mb))
    return Guard(app, local)


def outermost(
    protect: Callable[[ASGIApp], ASGIApp], entered: LoginTokens
) -> Callable[[gr.routes.App], AbstractAsyncContextManager[None]]:
    """A lifespan that puts `protect` around everything else that the app has, as its `middleware` would not stand.

    Gradio puts its own around what it is given, and would answer other sites before the page can refuse them. It also
    keeps who is logged in for itself, under a cookie that only one process knows; `entered` takes the place of that.
    """

    @asynccontextmanager
    async def lifespan(app: gr.routes.App) -> AsyncIterator[None]:
        app.middleware_stack = protect(cast("ASGIApp", app.middleware_stack))
        app.tokens, app.cookie_id = cast("dict[str, str]", entered), entered.name
        yield

    return lifespan


def unavailable(_request: Request, error: Exception) -> Response:
    """What a request is answered with for which the database, or a file of a library, can't be used."""
    return PlainTextResponse(str(error), 503)


def log_out(request: Request) -> Response:
    """End all log-ins of the user, as Gradio's own way does, which other sites can send people to."""
    app = request.app
    if app.auth is not None and (user := user_of(request.scope)):
        app.tokens.end(user)
    response = RedirectResponse("./", 303)
    for kind in ("access-token", "access-token-unsecure"):
        response.delete_cookie(f"{kind}-{app.cookie_id}")
    return response


def lan_address() -> str:
    """The address under which other computers find this one; none of them is asked for it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # RFC 5737: nobody's; connecting a datagram socket sends nothing
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def api(house: House, logins: Logins) -> Mount:
    """The API for programs, to those who have a token of a user whom the page serves."""

    def holder(token: str) -> str:
        user = house.tokens.user(token)
        return user if user in logins.users() else ""

    answers = Answers(house.chat, house.runs, UserChoices(house.conversations, house.settings))
    return Mount("/v1", routes=Completions(answers, house.loading, holder).routes())


def marks(house: House) -> list[Route]:
    """Where an open page asks every few seconds whether it still shows which model answers, and the user's documents.

    See `Models.mark` and `library.mark_of`. What another process has switched to is followed then.
    """

    def model(_request: Request) -> Response:
        house.models.follow()
        return PlainTextResponse(house.models.mark)

    def documents(request: Request) -> Response:
        user = user_of(request.scope)
        mark = mark_of(user, house.documents, house.chat.arrivals, house.followed) if user else ""
        return PlainTextResponse(mark)

    return [Route(MARK, model), Route(DOCUMENTS_MARK, documents)]


def guarded(web: WebSettings, local: bool, logins: Logins, streams: Streams, *more: BaseRoute) -> dict[str, Any]:
    """What keeps strangers out, and the page quiet."""
    return {
        "auth": None
        if local and not logins.names()
        else Authenticator(logins, shared=shared_counts(logins.engine)).gradio_auth(),
        "app_kwargs": {
            "lifespan": outermost(
                lambda app: protected(app, web, local, streams), LoginTokens(Sessions(logins.engine, logins))
            ),
            "exception_handlers": {SequiturError: unavailable},
            "routes": [*files(), Route(LOGOUT, log_out, methods=["POST"]), *more],
        },
        "auth_message": WAIT_AND_TRY,
        "share": False,
        "run_history": False,
        "mcp_server": False,
        "enable_monitoring": False,
        "strict_cors": True,
        "ssr_mode": False,
        "pwa": False,
        "show_error": False,
        "quiet": True,
        "prevent_thread_lock": True,
        # Gradio has asked the page whether it is up by then; it would ask once more, and give up after 3 s, which a
        # busy computer may take
        "_frontend": False,
    }


def free_port(web: WebSettings) -> int:
    """The port to listen on.

    Raises:
        SettingsError: it is in use, or the host is not an address of this computer.
    """
    family = socket.AF_INET6 if ":" in web.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((web.host, web.port))
        except OSError as error:
            raise SettingsError(_listen_error(error, web)) from error
        return int(probe.getsockname()[1])


def _listen_error(error: OSError, web: WebSettings) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {web.port} is in use; choose another with --port, or 0 for any free one."
    return f"The page can't listen on {web.host}:{web.port} ({error.strerror}); choose another --host or --port."
