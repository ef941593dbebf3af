"""A document that carries no text, only pictures of its pages."""

from __future__ import annotations

from assistant.errors import LibraryError


class ScanError(LibraryError):
    """No text can be taken from a PDF as it is; recognition of characters (OCR) may find some in its pictures."""
