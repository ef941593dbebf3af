"""E-mails (.eml): who wrote when to whom about what, and the text. Attachments are named and not read."""

from __future__ import annotations

import re
from codecs import lookup
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from email import policy
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from itertools import chain, islice
from pathlib import Path

from assistant.errors import LibraryError
from assistant.library.readers import html
from assistant.library.readers.shared.text import WESTERN, decode_bytes, plain_pieces, tidy, title_line, title_of
from assistant.text.chunks import Block

SUFFIXES = (".eml",)
RECORDS = False
SHOWN = ("From", "To", "Cc", "Date", "Subject")
# A longer header is no address list that anybody reads.
HEADER_CHARS = 2000
ATTACHMENTS_MOST = 100
NO_SUBJECT = "a message without a subject"
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
    attachments = _attachments(message)
    yield from _body(message, title, attachments)
    if attachments:
        overflow = f" and {len(attachments) - ATTACHMENTS_MOST} more" if len(attachments) > ATTACHMENTS_MOST else ""
        names = ", ".join(islice(attachments.values(), ATTACHMENTS_MOST))
        yield Block(f"Attachments, which were not read: {names}{overflow}", title)


def _headers(message: MIMEPart) -> dict[str, str]:
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


def _attachments(message: EmailMessage) -> dict[MIMEPart, str]:
    """The parts that are not read, in order, with their names; what has none is left out."""
    beside_text = set(message.iter_attachments())
    unread = (
        part
        for part in _parts(message)
        if part in beside_text or part.is_attachment() or part.get_content_maintype() not in {"text", "multipart"}
    )
    return {part: name for part in unread if (name := tidy(part.get_filename() or "") or _subject(part))}


def _parts(message: EmailMessage) -> Iterator[MIMEPart]:
    """A message and all its parts, in order; a message that is forwarded in it is one of them."""
    pending_parts: list[MIMEPart] = [message]
    while pending_parts:
        part = pending_parts.pop()
        yield part
        if part.get_content_maintype() == "multipart":
            pending_parts += list(part.iter_parts())[::-1]


def _subject(part: MIMEPart) -> str:
    """What the message that a part holds is about; "" where it holds none."""
    messages = part.iter_parts() if part.get_content_type() == "message/rfc822" else ()
    return next((_headers(message).get("Subject") or NO_SUBJECT for message in messages), "")


def _body(part: MIMEPart, title: str, attachments: Container[MIMEPart]) -> list[Block]:
    """What a part says; of alternatives, the first that says anything."""
    if part.is_attachment() or part in attachments:
        return []
    match part.get_content_type().split("/"):
        case "text", "plain":
            return [Block(piece.text, title, unit=piece.unit) for piece in plain_pieces(_text(part))]
        case "text", "html":
            return list(html.blocks(_text(part, html.declared_encoding), title))
        case "multipart", kind:
            bodies = filter(None, (_body(subpart, title, attachments) for subpart in part.iter_parts()))
            return list(chain.from_iterable(islice(bodies, 1) if kind == "alternative" else bodies))
    return []


def _text(part: MIMEPart, find_encoding: Callable[[bytes], str] = lambda _: WESTERN) -> str:
    """The text of a part. Of one that says no character set, or that of plain English, the bytes tell it."""
    with suppress(LookupError, ValueError):  # a character set that nobody knows
        if lookup(part.get_content_charset("ascii")).name != "ascii":
            return str(part.get_content())
    content = part.get_payload(decode=True)
    return decode_bytes(content, find_encoding) if isinstance(content, bytes) else ""
