"""E-mails (.eml): who wrote when to whom about what, and the text. Attachments are named and not read."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from email import policy
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from itertools import chain, islice
from pathlib import Path

from assistant.errors import LibraryError
from assistant.library.readers import html
from assistant.library.readers.shared.text import WESTERN, plain_pieces, tidy, title_line, title_of
from assistant.text.chunks import Block

SUFFIXES = (".eml",)
RECORDS = False
SHOWN = ("From", "To", "Cc", "Date", "Subject")
# A longer header is no address list that anybody reads.
HEADER_CHARS = 2000
ATTACHMENTS_MOST = 100
# Lines that may begin a part; each takes Python's parser 60 microseconds.
PARTS_MOST = 20_000
# So long may a header be that is parsed, which takes time by the square of its length.
TYPE_CHARS = 10_000
_TYPES = re.compile(rb"^content-[a-z-]+:[^\n]*(?:\n[ \t][^\n]*)*", re.IGNORECASE | re.MULTILINE)


def read(path: Path) -> Iterator[Block]:
    """The headers that people read, the text, and the names of attachments, under the subject.

    Raises:
        LibraryError: the file is no e-mail, or has too many parts.
    """
    data = path.read_bytes()
    if data.count(b"\n--") > PARTS_MOST:
        raise LibraryError(f"it has more than {PARTS_MOST:,} parts")
    if any(len(header) > TYPE_CHARS for header in _TYPES.findall(data)):
        raise LibraryError(f"it has a header of more than {TYPE_CHARS:,} characters")
    message = BytesParser(EmailMessage, policy=policy.default).parsebytes(data)
    headers = _headers(message)
    if "From" not in headers:
        raise LibraryError("it is not an e-mail that can be read")
    title = title_line(headers.get("Subject", "")) or title_of(path)
    yield Block("; ".join(f"{name}: {headers[name]}" for name in SHOWN if headers.get(name)), title)
    attachments = {part: name for part in message.iter_attachments() if (name := tidy(part.get_filename() or ""))}
    yield from _body(message, title, attachments)
    if attachments:
        overflow = f" and {len(attachments) - ATTACHMENTS_MOST} more" if len(attachments) > ATTACHMENTS_MOST else ""
        names = ", ".join(islice(attachments.values(), ATTACHMENTS_MOST))
        yield Block(f"Attachments, which were not read: {names}{overflow}", title)


def _headers(message: EmailMessage) -> dict[str, str]:
    """The headers to show, decoded. The parser of structured ones takes time by the square of their length."""
    headers = dict[str, str]()
    for name, value in message.raw_items():
        if (key := name.title()) in SHOWN and key not in headers:
            headers[key] = tidy(_decoded(_unencoded(str(value))[:HEADER_CHARS]))
    return headers


def _unencoded(value: str) -> str:
    """A header with its bytes beyond ASCII, which no e-mail should have, as the letters that they mean."""
    data = value.encode("utf-8", "surrogateescape")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(WESTERN, "replace")


def _decoded(value: str) -> str:
    try:
        return str(make_header(decode_header(value)))
    except (ValueError, LookupError, MessageError):  # an encoding that nobody knows, or that it isn't in
        return value


def _body(part: MIMEPart, title: str, attachments: Container[MIMEPart]) -> list[Block]:
    """What a part says; of alternatives, the first that says anything."""
    if part.is_attachment() or part in attachments:
        return []
    match part.get_content_type().split("/"):
        case "text", "plain":
            return [Block(piece.text, title, unit=piece.unit) for piece in plain_pieces(_text(part))]
        case "text", "html":
            return list(html.blocks(_text(part), title))
        case "multipart", kind:
            bodies = filter(None, (_body(subpart, title, attachments) for subpart in part.iter_parts()))
            return list(chain.from_iterable(islice(bodies, 1) if kind == "alternative" else bodies))
    return []


def _text(part: MIMEPart) -> str:
    try:
        return str(part.get_content())
    except (LookupError, ValueError):  # a character set that nobody knows
        content = part.get_payload(decode=True)
        return content.decode("utf-8", "replace") if isinstance(content, bytes) else ""
