"""The errors that a person may see. Each message is one sentence that says what to do.

Code raises these where the cause can be named; the command line prints them (exit code 2) and the page shows them as a
banner. Anything else that escapes is a bug.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class SequiturError(Exception):
    """Base of every error meant for a person's eyes."""


class SettingsError(SequiturError):
    """A setting that is unknown, out of range, or at odds with another."""


class ModelError(SequiturError):
    """A model that can't be found, fetched, trusted, loaded or run."""


class ChoiceError(ModelError):
    """Words that a model can't be asked to choose between: they begin alike, or it tells too little of them."""


class LibraryError(SequiturError):
    """An index or a document that can't be read or written."""


class CollectionError(LibraryError):
    """A name that no collection of documents has, or one of which nothing can be asked."""


class DamagedIndexError(LibraryError):
    """An index that can be made again from what is kept beside it."""


class TextlessIndexError(LibraryError):
    """An index that stores no texts of its passages, or none that can be read."""


class FactError(SequiturError):
    """A fact that can't be stored as given."""


class StoreError(SequiturError):
    """A conversation that can't be read or written, or that is not the user's own."""


class BackupError(SequiturError):
    """A backup that can't be written, read or restored."""


class BusyError(StoreError):
    """An answer that can't begin while others are being written."""


class EndingError(SequiturError):
    """An answer that can't begin, since the program is ending."""


class LimitError(SequiturError):
    """More than a person may ask or keep by the settings."""


class UtteranceError(SequiturError):
    """A message that can't be answered as it stands (empty, too long)."""


class DataError(SequiturError):
    """A file of questions, passages, judgements or results that can't be used as it is."""


@contextmanager
def disk_errors_as(kind: type[SequiturError], what: str, advice: str = "choose another") -> Iterator[None]:
    """Tell what the disk refuses in the block as one sentence: `what`, the reason in brackets, and `advice`.

    Raises:
        SequiturError: of this kind, in place of any OSError.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{what} ({error.strerror or error}); {advice}.") from error
