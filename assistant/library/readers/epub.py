"""E-books (.epub): archives of chapters in XHTML, whose order stands in a package file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from lxml import etree

from assistant.errors import LibraryError
from assistant.library.readers import html
from assistant.library.readers.shared.archive import XML_BYTES, check_archive
from assistant.library.readers.shared.text import title_line, title_of
from assistant.text.chunks import Block

SUFFIXES = (".epub",)
RECORDS = False
CONTAINER = "META-INF/container.xml"
ENCRYPTION = "META-INF/encryption.xml"
_KIND = "an e-book"
_READ = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")


def read(path: Path) -> Iterator[Block]:
    """The chapters' paragraphs, under the book's title and their headings.

    Raises:
        LibraryError: the book is protected against copying, unpacks to too much, or is no e-book.
    """
    check_archive(path, _KIND)
    try:
        with ZipFile(path) as parts:
            package, encrypted = _package(parts), _encrypted(parts)
            unpacked = 0
            title = title_line(_first(_parsed(parts, package), "title")) or title_of(path)
            for number, chapter in enumerate(_chapters(parts, package), 1):
                if chapter in encrypted:
                    raise LibraryError("it is protected against copying, so that only its shop's programs can read it")
                unpacked += parts.getinfo(chapter).file_size
                if unpacked > XML_BYTES:
                    raise LibraryError(f"its chapters unpack to more than {XML_BYTES:,} bytes; split it up")
                markup = parts.read(chapter).decode("utf-8", "replace")
                for block in html.blocks(markup, title):
                    yield replace(block, title=_under(title, block.title), place=f"part {number}")
    except (BadZipFile, KeyError, ValueError, etree.XMLSyntaxError) as error:
        raise LibraryError(f"it is not {_KIND} that can be read") from error


def _under(book: str, chapter: str) -> str:
    return chapter if chapter.startswith(book) else f"{book} - {chapter}"


def _package(parts: ZipFile) -> str:
    """The name of the package file in the archive."""
    for root in _named(_parsed(parts, CONTAINER), "rootfile"):
        return str(root.get("full-path", ""))
    raise KeyError(CONTAINER)


def _encrypted(parts: ZipFile) -> set[str]:
    """The names of encrypted files; often these are fonts alone."""
    if ENCRYPTION not in parts.namelist():
        return set()
    return {unquote(str(one.get("URI", ""))) for one in _named(_parsed(parts, ENCRYPTION), "CipherReference")}


def _chapters(parts: ZipFile, package: str) -> Iterator[str]:
    """The names of the chapters' files, each once, in reading order; those that are missing are passed over."""
    tree, folder, present = _parsed(parts, package), PurePosixPath(package).parent, set(parts.namelist())
    items = {one.get("id"): one for one in _named(tree, "item") if one.get("media-type") in _READ}
    for reference in _named(tree, "itemref"):
        item = items.pop(reference.get("idref"), None)
        name = normpath(str(folder / unquote(item.get("href", "")))) if item is not None else ""
        if name in present:
            present.remove(name)
            yield name


def _parsed(parts: ZipFile, name: str) -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return etree.fromstring(parts.read(name), parser)


def _named(tree: etree._Element, name: str) -> Iterator[etree._Element]:
    yield from tree.iter(f"{{*}}{name}")


def _first(tree: etree._Element, name: str) -> str:
    return next((str(one.text) for one in _named(tree, name) if one.text), "")
