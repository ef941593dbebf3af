"""Gives users the documents back that they uploaded, as files to keep: no browser shows them, whatever is in them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from assistant.library.originals import is_intact
from assistant.web.entered import user_of
from assistant.web.library import DAMAGED, OwnDocuments, document_with
from assistant.web.owners import NOT_THERE, ORIGINALS


def downloads(documents: OwnDocuments) -> Route:
    """The route of a user's own originals; what is another's is not there."""

    def give(request: Request) -> Response:
        user = user_of(request.scope)
        document = document_with(documents.list(user), request.path_params["document"]) if user else None
        if not document or not document.original:
            return PlainTextResponse(NOT_THERE, 404)
        if not is_intact(document.original):
            return PlainTextResponse(DAMAGED, 404)
        headers = {"Cache-Control": "private, no-store"}
        return FileResponse(
            document.original, headers=headers, media_type="application/octet-stream", filename=document.name
        )

    return Route(f"{ORIGINALS}/{{document}}", give, methods=["GET"])
