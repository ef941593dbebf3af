"""Formats that are zip archives of XML: opened after a look at what they unpack to."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile, ZipFile

from assistant.errors import LibraryError

# Office programs encrypt a document into an OLE file, which begins so; so do their old formats.
_OLE = b"\xd0\xcf\x11\xe0"
# Parts are unpacked into memory; a file of a few megabytes could fill it. Text is XML, a thousand pages are 20 MB.
UNPACKED_BYTES = 200_000_000
XML_BYTES = 30_000_000
_XML = (".xml", ".rels")


def check_archive(path: Path, kind: str, xml_bytes: int = XML_BYTES) -> None:
    """See that a file is an archive that can be unpacked.

    Args:
        path: the file.
        kind: what it is to be, such as "a Word document".
        xml_bytes: how much XML may be in it.

    Raises:
        LibraryError: it is encrypted, no archive, or unpacks to too much.
    """
    with path.open("rb") as file:
        if file.read(4) == _OLE:
            ending = path.suffix.lower()
            raise LibraryError(
                f"it is encrypted, or in the format of an old program; save it as {ending} without a password"
            )
    try:
        with ZipFile(path) as archive:
            infos = archive.infolist()
    except (BadZipFile, ValueError) as error:
        raise LibraryError(f"it is not {kind} that can be read") from error
    if any(info.flag_bits & 1 for info in infos):
        raise LibraryError("it is encrypted; save a copy without a password")
    sizes = [(info.filename.lower(), info.file_size) for info in infos]
    for suffix, limit in (("", UNPACKED_BYTES), (_XML, xml_bytes)):
        if sum(size for name, size in sizes if name.endswith(suffix)) > limit:
            raise LibraryError(f"it unpacks to more than {limit:,} bytes; split it, or take out its images")
