"""The retrievers that can be chosen, one file for each; adding one is adding a file that looks like `RetrieverModule`.

Commands, settings and the page find it by that file. It must follow the contract in tests/test_contracts.py.
"""

from __future__ import annotations

from typing import Protocol, cast

from assistant.protocols import Retriever
from assistant.registry import variants
from assistant.settings import Settings


class Indexes(Protocol):
    """The indexes of a library or a corpus that retrievers are made from, opened when they are needed."""

    @property
    def settings(self) -> Settings:
        """The settings, with depths and constants."""
        ...

    def words(self) -> Retriever:
        """The search by words, which every library has.

        Raises:
            LibraryError: the index can't be read.
        """
        ...

    def meaning(self) -> Retriever:
        """The search by dense vectors, which take minutes to make if they are missing.

        Raises:
            SequiturError: the encoder can't be loaded, or the vectors can't be made or are still being made.
        """
        ...

    def meaning_if_made(self) -> Retriever | None:
        """The same, or None while the vectors are being made, or where they can't be, or nobody asked for so many."""
        ...


class RetrieverModule(Protocol):
    """The interface of a module in this folder: a title for menus, and a hint that is shown below it, "" for none.

    `ENCODES` says whether it searches vectors, and `WAITS` whether it can't search before they are made.
    """

    TITLE: str
    SUMMARY: str
    ENCODES: bool
    WAITS: bool

    def opened(self, indexes: Indexes) -> Retriever:
        """The retriever over these indexes."""
        ...


def retriever_module(name: str) -> RetrieverModule:
    """The module of this name.

    Raises:
        SettingsError: there is no such retriever; the message lists those there are.
    """
    return cast("RetrieverModule", variants.module("retrievers", name))
