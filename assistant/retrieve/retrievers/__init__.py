"""One file a retriever that can be chosen. A module here looks as `Module` says; adding a retriever is adding a file.

Commands, settings and the page know it at once. What it finds must follow the contract in tests/test_contracts.py.
"""

from __future__ import annotations

from typing import Protocol, cast

from assistant.protocols import Retriever
from assistant.registry import variants
from assistant.settings import Settings


class Indexes(Protocol):
    """What retrievers are put together from: those of a library or a corpus, opened when they are asked for."""

    @property
    def settings(self) -> Settings:
        """Depths and constants."""
        ...

    def words(self) -> Retriever:
        """Search by words, which every library can do.

        Raises:
            LibraryError: the index can't be read.
        """
        ...

    def meaning(self) -> Retriever:
        """Search by dense vectors, which take minutes to make where they are not there yet.

        Raises:
            SequiturError: the encoder can't be had, or the vectors can't be made or are still being made.
        """
        ...


class Module(Protocol):
    """What a module in this folder looks like: a title for menus, and a hint that is shown beneath, "" for none.

    `ENCODES` is true where it asks for `meaning`.
    """

    TITLE: str
    SUMMARY: str
    ENCODES: bool

    def opened(self, indexes: Indexes) -> Retriever:
        """The retriever over these indexes."""
        ...


def named(name: str) -> Module:
    """The module of this name.

    Raises:
        SettingsError: there is no such retriever; the message lists those there are.
    """
    return cast("Module", variants.module("retrievers", name))
