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
from assistant.library.readers.html import declared_encoding
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
_NAT64_PREFIX = IPv6Network("64:ff9b::/96")
_HEADERS = {"User-Agent": "Sequitur", "Accept": ", ".join(KINDS), "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """What stands at an address: the address in the end, a name for a file of it, and its content."""

    address: str
    file: str
    content: bytes


def is_public(address: Address) -> bool:
    """Whether this is an address of the public internet: not of this computer, its network, or a reserved range."""
    if isinstance(address, IPv6Address):
        embedded_ipv4 = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if address in _NAT64_PREFIX:
            embedded_ipv4 = IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded_ipv4 is not None and not is_public(embedded_ipv4):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def fetch_file(address: str, may_reach: Callable[[Address], bool] = is_public) -> FetchedFile:
    """What stands at a web address.

    Args:
        address: begins with http:// or https://; without either, https:// is meant.
        may_reach: whether a connection to this address is allowed.

    Raises:
        LibraryError: it can't be fetched, may not be, or is too large or of another kind; the message is a sentence.
    """
    url, deadline = _url(address), monotonic() + SECONDS_IN_ALL
    with (
        _http_errors_as_library_errors(address),
        httpx2.Client(timeout=SECONDS, trust_env=False, follow_redirects=False) as client,
    ):
        for _ in range(REDIRECTS_MOST + 1):
            request = _request(client, url, may_reach)
            response = client.send(request, stream=True)
            try:
                if not response.has_redirect_location:
                    return FetchedFile(str(url), _file(url, response), _content(response, deadline))
            finally:
                response.close()
            url = _checked(url.join(response.headers["Location"]))
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
    addresses = _resolved(url)
    if not all(map(may_reach, addresses)):
        raise LibraryError(f"{url.host} stands in a private network, or on this computer; it can't be added.")
    host = url.netloc.decode("ascii")
    extensions = {"sni_hostname": url.raw_host.decode("ascii")}
    return client.build_request(
        "GET", url.copy_with(host=str(addresses[0])), headers={**_HEADERS, "Host": host}, extensions=extensions
    )


def _resolved(url: httpx2.URL) -> list[Address]:
    try:
        address_infos = socket.getaddrinfo(url.raw_host.decode("ascii"), url.port or 0, type=socket.SOCK_STREAM)
        return [ip_address(str(info[4][0]).partition("%")[0]) for info in address_infos]
    except (OSError, UnicodeError, ValueError) as error:
        raise LibraryError(f"{_short(url.host)} was not found; check the address.") from error


def _content(response: httpx2.Response, deadline: float) -> bytes:
    if response.status_code != httpx2.codes.OK:
        raise LibraryError(f"The server doesn't give that page out ({response.status_code}); check the address.")
    parts, size = [], 0
    for part in response.iter_bytes():
        parts.append(part)
        size += len(part)
        if size > BYTES_MOST:
            raise LibraryError(f"It is larger than {BYTES_MOST // 1_000_000} MB; download it and add a part of it.")
        if monotonic() > deadline:
            raise LibraryError("It took too long to arrive; try again later, or download it and add the file.")
    return _in_utf8(b"".join(parts), response.headers.get("Content-Type", ""))


def _in_utf8(content: bytes, content_type: str) -> bytes:
    """Content in the encoding that only its server tells, with a mark by which a file of it is read as UTF-8."""
    encoding = declared_encoding(content_type.encode("ascii", "replace"))
    if encoding == WESTERN or not content_type.startswith("text/"):
        return content
    try:
        content.decode()
    except UnicodeDecodeError:
        return content.decode(encoding, "replace").encode("utf-8-sig")
    return content  # it is in UTF-8 already, whatever the server tells


def _file(url: httpx2.URL, response: httpx2.Response) -> str:
    content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if response.status_code == httpx2.codes.OK and content_type not in KINDS:
        raise LibraryError(
            f"It is of a kind that can't be read ({content_type[:60] or 'not told'}); pages, text and PDF can."
        )
    stem = PurePosixPath(url.path).stem[:60] or url.host
    return stem + KINDS.get(content_type, "")


@contextmanager
def _http_errors_as_library_errors(address: str) -> Iterator[None]:
    """Raise errors of HTTP as a `LibraryError`, whose message is a sentence for a person."""
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
