"""Turns errors of database drivers into advice for people."""

from __future__ import annotations

DAMAGED = "is damaged or not a database; move it away or put a backup in its place"
_FULL = "is on a full disk; free some space and try again, nothing was lost"
_NO_SERVER = "can't be reached; check that its server runs, and the setting 'database', nothing that was saved is lost"
_NO_CONNECTION = "has no connection left; raise max_connections there, or start fewer programs"
_NO_DATABASE = "is not there, or its user isn't; make it with createdb, or check the setting 'database'"
_LOGIN_REFUSED = "lets its user not in; check name and password in the setting 'database'"
_RESTARTING = "is starting or stopping; try again in a moment"

# Advice by the beginning of PostgreSQL's error codes, since its messages come in many languages.
_CODES = {
    "08": _NO_SERVER,
    "22021": "can't hold the character NUL; remove it from what you wrote",
    "25006": "can only be read; name the server that is written to in the setting 'database'",
    "28": _LOGIN_REFUSED,
    "3D000": _NO_DATABASE,
    "40": "was changed by another program at the same moment; try again",
    "42501": "refuses its user; let that user own the database, or grant it the right to make tables",
    "53100": _FULL,
    "53300": _NO_CONNECTION,
    "57P01": _NO_SERVER,
    "57P02": _NO_SERVER,
    "57P03": _RESTARTING,
}
# Advice by parts of SQLite's messages, and of messages about PostgreSQL servers that gave no code.
_SENTENCES = {
    "database or disk is full": _FULL,
    "no space left": _FULL,
    "disk i/o error": "can't be written (disk error); check the disk, nothing that was saved is lost",
    "attempt to write a readonly": "is read-only; make the file and its folder writable to save anything",
    "unable to open": "can't be opened; check that the file and its folder exist and are yours to read and write",
    "file is not a database": DAMAGED,
    "malformed": DAMAGED,
    "database is locked": "is busy with another program; close that one or try again",
    "authentication failed": _LOGIN_REFUSED,
    "no password supplied": _LOGIN_REFUSED,
    "does not exist": _NO_DATABASE,
    "too many clients": _NO_CONNECTION,
    "remaining connection slots": _NO_CONNECTION,
    "the database system is": _RESTARTING,
    "nul (0x00)": _CODES["22021"],
    "connection": _NO_SERVER,
    "resolve host": _NO_SERVER,
    "timeout expired": _NO_SERVER,
}


def advice(error: BaseException) -> str:
    """The advice for an error, as the rest of a sentence that begins with the name of the database."""
    code = getattr(error, "sqlstate", None) or ""
    if code:
        sentence = next((text for prefix, text in _CODES.items() if code.startswith(prefix)), "")
    else:
        message = str(error).lower()
        sentence = next((text for fragment, text in _SENTENCES.items() if fragment in message), "")
    return sentence or f"can't be used: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
