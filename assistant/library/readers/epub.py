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
_CHAPTER_TYPES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")


def read(path: Path) -> Iterator[Block]:
    """The chapters' paragraphs, under the book's title and their headings.

    Raises:
        LibraryError: the book is protected against copying, unpacks to too much, or is no e-book.
    """
    check_archive(path, _KIND)
    try:
        with ZipFile(path) as archive:
            package_name, encrypted_names = _package_name(archive), _encrypted_names(archive)
            unpacked_bytes = 0
            title = title_line(_first_text(_parsed(archive, package_name), "title")) or title_of(path)
            for number, chapter in enumerate(_chapters(archive, package_name), 1):
                if chapter in encrypted_names:
                    raise LibraryError("it is protected against copying, so that only its shop's programs can read it")
                unpacked_bytes += archive.getinfo(chapter).file_size
                if unpacked_bytes > XML_BYTES:
                    raise LibraryError(f"its chapters unpack to more than {XML_BYTES:,} bytes; split it up")
                markup = archive.read(chapter).decode("utf-8", "replace")
                for block in html.blocks(markup, title):
                    yield replace(block, title=_chapter_title(title, block.title), place=f"part {number}")
    except (BadZipFile, KeyError, ValueError, etree.XMLSyntaxError) as error:
        raise LibraryError(f"it is not {_KIND} that can be read") from error


def _chapter_title(book: str, chapter: str) -> str:
    return chapter if chapter.startswith(book) else f"{book} - {chapter}"


def _package_name(archive: ZipFile) -> str:
    """The name of the package file in the archive."""
    for root in _elements(_parsed(archive, CONTAINER), "rootfile"):
        return str(root.get("full-path", ""))
    raise KeyError(CONTAINER)


def _encrypted_names(archive: ZipFile) -> set[str]:
    """The names of encrypted files; often these are fonts alone."""
    if ENCRYPTION not in archive.namelist():
        return set()
    return {
        unquote(str(reference.get("URI", "")))
        for reference in _elements(_parsed(archive, ENCRYPTION), "CipherReference")
    }


def _chapters(archive: ZipFile, package_name: str) -> Iterator[str]:
    """The names of the chapters' files, each once, in reading order; those that are missing are skipped."""
    tree, folder, names = _parsed(archive, package_name), PurePosixPath(package_name).parent, set(archive.namelist())
    items = {entry.get("id"): entry for entry in _elements(tree, "item") if entry.get("media-type") in _CHAPTER_TYPES}
    for reference in _elements(tree, "itemref"):
        item = items.pop(reference.get("idref"), None)
        name = normpath(str(folder / unquote(item.get("href", "")))) if item is not None else ""
        if name in names:
            names.remove(name)
            yield name


def _parsed(archive: ZipFile, name: str) -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return etree.fromstring(archive.read(name), parser)


def _elements(tree: etree._Element, name: str) -> Iterator[etree._Element]:
    yield from tree.iter(f"{{*}}{name}")


def _first_text(tree: etree._Element, name: str) -> str:
    return next((str(element.text) for element in _elements(tree, name) if element.text), "")
