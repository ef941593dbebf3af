"""The addresses for monitoring: whether the process is alive, whether it is ready, and its metrics.

None of it needs a login, and none of it tells anything of anybody: addresses, names and texts stay out.
"""

from __future__ import annotations

import hmac

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from assistant.api.completions import Loading
from assistant.runs import Runs
from assistant.settings import WebSettings
from assistant.store.users import Logins
from assistant.web.metrics import Metrics
from assistant.web.owners import HEALTH, METRICS, READINESS
from assistant.web.security import is_loopback

NO_METRICS = (
    "The figures are for this computer, where nobody logs in, or for a token: set web.metrics_token and show it."
)


def health(loading: Loading, runs: Runs) -> list[Route]:
    """`/healthz`, which a live process answers with 200, and `/readyz`, which says 503 until it can answer questions.

    A process that was told to end is not ready either, nor one whose database a newer version of the program has
    changed, so that a proxy sends nobody to it.
    """

    async def lives(_request: Request) -> Response:
        return PlainTextResponse("ok")

    async def is_ready(_request: Request) -> Response:
        reason = unready_reason(loading, runs)
        return PlainTextResponse(reason or "ready", 503 if reason else 200)

    return [Route(HEALTH, lives), Route(READINESS, is_ready)]


def unready_reason(loading: Loading, runs: Runs) -> str:
    """Why no question can be answered, in a word for programs, "" where one can."""
    if runs.ending:
        return "ending"
    if runs.outdated:
        return "outdated"
    if loading.error:
        return "failed"
    return "" if loading.ready else "loading"


def metrics_route(metrics: Metrics, web: WebSettings, logins: Logins) -> Route:
    """`/metrics`, for Prometheus: with the token of the settings, or from this computer where nobody logs in.

    Where people log in the token is asked for everywhere: a proxy on this computer would look like the computer itself.
    """
    token = web.metrics_token.get_secret_value()

    def tell(request: Request) -> Response:  # in a thread: it may ask the database
        authorization = request.headers.get("authorization", "").encode()
        by_token = bool(token) and hmac.compare_digest(authorization, f"Bearer {token}".encode())
        is_alone = not token and not logins.names() and is_loopback(request.client.host if request.client else "")
        if not by_token and not is_alone:
            return PlainTextResponse(NO_METRICS, 403)
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return Route(METRICS, tell)
