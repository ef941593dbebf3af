"""Fetches what stands at a web address that a user names, and nothing of the network that the server stands in.

Whoever names an address has the server ask for it. So a host is resolved here, every address that it has must be one
of the public internet, and the connection goes to the address that was looked at: a name that resolves otherwise a
moment later changes nothing. The same is done after each redirect.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from pathlib import PurePosixPath
from time import monotonic

import httpx2

from assistant.errors import LibraryError
from assistant.library.readers.html import declared
from assistant.library.readers.shared.text import WESTERN

Address = IPv4Address | IPv6Address
ADDRESS_CHARS = 2000
BYTES_MOST = 20_000_000
REDIRECTS_MOST = 5
# For one answer of the server, and for all of it.
SECONDS, SECONDS_IN_ALL = 10.0, 30.0
# Which file each kind of content is read as.
KINDS = {
    "text/html": ".web.html",
    "application/xhtml+xml": ".web.html",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "application/pdf": ".pdf",
}
# IPv4 addresses are also reached as IPv6 ones by translation (RFC 6052).
_TRANSLATED = IPv6Network("64:ff9b::/96")
_HEADERS = {"User-Agent": "Sequitur", "Accept": ", ".join(KINDS), "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Fetched:
    """What stands at an address: the address in the end, a name for a file of it, and its content."""

    address: str
    file: str
    content: bytes


def is_public(address: Address) -> bool:
    """Whether this is an address of the public internet: not of this computer, its network, or a reserved range."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if address in _TRANSLATED:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None and not is_public(inner):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def fetched(address: str, may_reach: Callable[[Address], bool] = is_public) -> Fetched:
    """What stands at a web address.

    Args:
        address: begins with http:// or https://; without either, https:// is meant.
        may_reach: whether a connection to this address is allowed.

    Raises:
        LibraryError: it can't be fetched, may not be, or is too large or of another kind; the message is a sentence.
    """
    url, end = _url(address), monotonic() + SECONDS_IN_ALL
    with _told(address), httpx2.Client(timeout=SECONDS, trust_env=False, follow_redirects=False) as client:
        for _ in range(REDIRECTS_MOST + 1):
            request = _request(client, url, may_reach)
            answer = client.send(request, stream=True)
            try:
                if not answer.has_redirect_location:
                    return Fetched(str(url), _file(url, answer), _content(answer, end))
            finally:
                answer.close()
            url = _checked(url.join(answer.headers["Location"]))
    raise LibraryError(f"{_short(address)} leads from one address to the next without end.")


def _url(address: str) -> httpx2.URL:
    text = address.strip()
    if not text or len(text) > ADDRESS_CHARS or any(char.isspace() or not char.isprintable() for char in text):
        raise LibraryError("That is no web address; it looks like https://example.org/page.")
    try:
        return _checked(httpx2.URL(text if "://" in text else f"https://{text}"))
    except httpx2.InvalidURL as error:
        raise LibraryError("That is no web address; it looks like https://example.org/page.") from error


def _checked(url: httpx2.URL) -> httpx2.URL:
    """The address without the place on the page that it names, if it is one of the web."""
    if url.scheme not in {"http", "https"} or not url.host:
        raise LibraryError("Only addresses that begin with http:// or https:// can be added.")
    if url.userinfo:
        raise LibraryError("An address with a name and password in it can't be added; leave those out.")
    return url.copy_with(fragment=None)


def _request(client: httpx2.Client, url: httpx2.URL, may_reach: Callable[[Address], bool]) -> httpx2.Request:
    """A request to the address that the host has now, in the host's name."""
    where = _resolved(url)
    if not all(map(may_reach, where)):
        raise LibraryError(f"{url.host} stands in a private network, or on this computer; it can't be added.")
    host = url.netloc.decode("ascii")
    name = {"sni_hostname": url.raw_host.decode("ascii")}
    return client.build_request(
        "GET", url.copy_with(host=str(where[0])), headers={**_HEADERS, "Host": host}, extensions=name
    )


def _resolved(url: httpx2.URL) -> list[Address]:
    try:
        found = socket.getaddrinfo(url.raw_host.decode("ascii"), url.port or 0, type=socket.SOCK_STREAM)
        return [ip_address(str(one[4][0]).partition("%")[0]) for one in found]
    except (OSError, UnicodeError, ValueError) as error:
        raise LibraryError(f"{_short(url.host)} was not found; check the address.") from error


def _content(answer: httpx2.Response, end: float) -> bytes:
    if answer.status_code != httpx2.codes.OK:
        raise LibraryError(f"The server doesn't give that page out ({answer.status_code}); check the address.")
    parts, size = [], 0
    for part in answer.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > BYTES_MOST:
            raise LibraryError(f"It is larger than {BYTES_MOST // 1_000_000} MB; download it and add a part of it.")
        if monotonic() > end:
            raise LibraryError("It took too long to arrive; try again later, or download it and add the file.")
    return _in_utf8(b"".join(parts), answer.headers.get("Content-Type", ""))


def _in_utf8(content: bytes, kind: str) -> bytes:
    """Content in the encoding that only its server tells, with a mark by which a file of it is read as UTF-8."""
    encoding = declared(kind.encode("ascii", "replace"))
    if encoding == WESTERN or not kind.startswith("text/"):
        return content
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode(encoding, "replace").encode("utf-8-sig")
    return content  # it is in UTF-8 already, whatever is told


def _file(url: httpx2.URL, answer: httpx2.Response) -> str:
    kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if answer.status_code == httpx2.codes.OK and kind not in KINDS:
        raise LibraryError(f"It is of a kind that can't be read ({kind[:60] or 'not told'}); pages, text and PDF can.")
    stem = PurePosixPath(url.path).stem[:60] or url.host
    return stem + KINDS.get(kind, "")


@contextmanager
def _told(address: str) -> Iterator[None]:
    """What goes wrong on the way, as a sentence for a person."""
    try:
        yield
    except httpx2.InvalidURL as error:
        raise LibraryError(f"{_short(address)} leads to something that is no web address.") from error
    except httpx2.TimeoutException as error:
        raise LibraryError(f"{_short(address)} took too long to answer; try again later.") from error
    except httpx2.HTTPError as error:
        raise LibraryError(f"{_short(address)} can't be reached ({error}).") from error


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
