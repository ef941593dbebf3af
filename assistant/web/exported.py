"""A conversation as a page of HTML that stands by itself: no scripts, and nothing that is fetched."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from assistant.library.passages import document_of
from assistant.store.conversations import Conversation
from assistant.types import Passage
from assistant.web.owners import ORIGINALS
from assistant.web.render import render
from assistant.wording.views import link_of


def exported(conversation: Conversation, site: str) -> str:
    """The page. Numbers in replies lead to the sources beneath them, and these to where they stand.

    Args:
        conversation: whose turns are shown.
        site: the address of Sequitur's own page, under which documents of the user's are; without one they have none.
    """
    own_site = site if urlsplit(site).scheme in {"http", "https"} and site.endswith("/") else ""
    page = render("exported", conversation=conversation, address=lambda passage: _address(passage, own_site))
    return str(page)  # plain text from here on, which is escaped where it stands in another page


def _address(passage: Passage, site: str) -> str:
    """Where a source is found, "" where nobody can tell."""
    if link := link_of(passage.source):
        return link
    return f"{site.rstrip('/')}{ORIGINALS}/{quote(document_of(passage.id), '')}" if passage.own and site else ""
