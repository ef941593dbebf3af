"""The document that a passage of a user's stands in, opened at it: of a PDF the picture of the page, else the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assistant.errors import LibraryError
from assistant.library.excerpts import Excerpt, excerpt
from assistant.library.originals import is_intact
from assistant.library.passages import document_of
from assistant.library.pdf_pages import Picture, page_picture
from assistant.types import Passage
from assistant.web.library import DAMAGED, Document, document_with

NOT_KEPT = "There is no copy of this document: it was removed, or added before copies were kept. Add it anew."


@dataclass(frozen=True, slots=True)
class OpenedDocument:
    """What is shown of a document: a picture of its page, or its text; or the `problem` that there is with it.

    `document` is its id, "" where it can't be downloaded either.
    """

    picture: Picture | None = None
    text: Excerpt | None = None
    problem: str = ""
    document: str = ""


def open_document(documents: Sequence[Document], passage: Passage, quote: str) -> OpenedDocument:
    """The document of a passage, with the words of a quote from it marked.

    Args:
        documents: those of the user who asks.
        passage: one that stands in one of them, or did.
        quote: a part of its text.
    """
    document = document_with(documents, document_of(passage.id))
    if document is None or document.original is None:
        return OpenedDocument(problem=NOT_KEPT)
    if not is_intact(document.original):
        return OpenedDocument(problem=DAMAGED)
    try:
        if passage.page:
            return OpenedDocument(picture=page_picture(document.original, passage.page, quote), document=document.id)
        text = excerpt(document.original, document.file or document.name, passage.text, quote)
    except LibraryError as error:
        return OpenedDocument(problem=f"The document can't be shown: {str(error).rstrip('.')}.")
    return OpenedDocument(text=text, document=document.id)
