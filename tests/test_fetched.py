"""What stands at a web address: fetched from the public internet alone, within limits, and read without its menus."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from threading import Thread

import pytest

from assistant.errors import LibraryError
from assistant.library import addresses
from assistant.library.addresses import fetch_file, is_public
from assistant.library.readers import read

ARTICLE = " ".join(f"Sentence {n} says, at some length, how the machine is cleaned with water." for n in range(12))
PAGE = (
    "<html><head><title>Cleaning - A shop</title></head><body>"
    "<div id='menu' class='sidebar'><ul><li><a href='/a'>Buy now</a></li><li><a href='/b'>Sale</a></li></ul></div>"
    f"<article><h2>Every day</h2><p>{ARTICLE}</p><p>{ARTICLE}</p></article>"
    "<div class='footer'><a href='/c'>Imprint</a></div></body></html>"
)


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        answer = {
            "/page": (200, "text/html; charset=utf-8", PAGE.encode()),
            "/text": (200, "text/plain", b"Oats are a cereal."),
            "/cyrillic": (200, "text/plain; charset=windows-1251", "Овсянка полезна.".encode("cp1251")),
            "/wrong": (200, "text/html; charset=windows-1251", "<p>Овсянка полезна.</p>".encode()),
            "/unknown": (
                200,
                "text/html; charset=none",
                '<meta charset="koi8-r"><p>Овсянка полезна.</p>'.encode("koi8-r"),
            ),
            "/zip": (200, "application/zip", b"PK"),
            "/large": (200, "text/plain", b"x" * 5000),
            "/gone": (404, "text/html", b"gone"),
        }
        leads = {
            "/moved": "/page",
            "/round": "/round",
            "/inside": "http://10.0.0.1/page",
            "/file": "file:///etc/passwd",
            "/nowhere": "//a.org:abc/",
        }
        if self.path in leads:
            self.send_response(302)
            self.send_header("Location", leads[self.path])
            self.end_headers()
            return
        status, kind, body = answer[self.path]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Nothing is printed."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def here(address: addresses.Address) -> bool:
    """Only this computer, which no caller but this test may reach."""
    return address == ip_address("127.0.0.1")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1",
        "240.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "2001:db8::1",
        "::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::a00:1",
    ],
)  # fmt: skip
def test_what_is_not_public_is_told(address):
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:4700:4700::1111"])
def test_what_is_public_is_told(address):
    assert is_public(ip_address(address))


def test_this_computer_is_refused_by_every_name_of_it(site):
    port = site.rpartition(":")[2]
    for host in ("127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"):
        with pytest.raises(LibraryError, match=r"private network|not found|no web address"):
            fetch_file(f"http://{host}:{port}/page")


def test_a_page_is_fetched_and_read_without_its_menus(site, tmp_path):
    page = fetch_file(f"{site}/moved#part", here)
    assert page.address == f"{site}/page"
    (tmp_path / page.file).write_bytes(page.content)
    blocks = read(tmp_path / page.file)
    assert {block.title for block in blocks} == {"Cleaning - A shop"}
    assert {block.heading for block in blocks} == {"Every day"}
    assert not any("Buy now" in block.text for block in blocks)


@pytest.mark.parametrize("path", ["/cyrillic", "/wrong", "/unknown"])
def test_the_encoding_that_a_server_tells_counts_where_it_can_be_right(site, tmp_path, path):
    page = fetch_file(site + path, here)
    (tmp_path / page.file).write_bytes(page.content)
    assert [block.text for block in read(tmp_path / page.file)] == ["Овсянка полезна."]


def test_a_page_without_an_article_is_read_as_it_is(tmp_path):
    (tmp_path / "a.web.html").write_text("<title>T</title><p>Oats are a cereal.</p>")
    assert [block.text for block in read(tmp_path / "a.web.html")] == ["Oats are a cereal."]


def test_every_address_of_a_name_and_every_redirect_is_looked_at(site, monkeypatch):
    with pytest.raises(LibraryError, match=r"10\.0\.0\.1 stands in a private network"):
        fetch_file(f"{site}/inside", here)
    two = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 80)) for host in ("93.184.215.14", "127.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_how: two)
    with pytest.raises(LibraryError, match="private network"):
        fetch_file("http://two.example/page")


def test_a_name_is_resolved_once_and_that_address_is_asked(site, monkeypatch):
    asked: list[str] = []
    resolve = socket.getaddrinfo

    def resolved(host: str, *args: object, **how: object) -> object:
        asked.append(host)
        return resolve("127.0.0.1", *args, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    assert fetch_file(site.replace("127.0.0.1", "name.example") + "/text", here).content == b"Oats are a cereal."
    assert asked.count("name.example") == 1


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/zip", r"kind that can't be read \(application/zip\)"),
        ("/gone", r"doesn't give that page out \(404\)"),
        ("/round", "without end"),
        ("/file", "http:// or https://"),
        ("/nowhere", "leads to something that is no web address"),
        ("/large", "larger than"),
    ],
)
def test_what_cant_be_added_is_told(site, path, told, monkeypatch):
    monkeypatch.setattr(addresses, "BYTES_MOST", 1000)
    with pytest.raises(LibraryError, match=told):
        fetch_file(site + path, here)


@pytest.mark.parametrize(
    "address", ["", "ftp://example.org", "http://ann:pw@example.org", "https://", "no spaces.here", "http://[::"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(LibraryError):
        fetch_file(address)


def test_a_server_that_is_not_there_is_told():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(LibraryError, match="can't be reached"):
        fetch_file(f"http://127.0.0.1:{port}/", here)
