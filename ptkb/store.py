"""Stores the statements that users make about themselves: their personal text knowledge base (PTKB).

Users see only their own facts. Text is stored as it was typed, as plain text, in Unicode's composed form (NFC) with
single spaces. Two facts count as the same if they differ only in case, spaces and punctuation.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Engine,
    ForeignKey,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    UniqueConstraint,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from assistant.errors import FactError
from assistant.store.shared import database_time
from assistant.types import Fact, new_id

MAX_FACT_CHARS = 500
MAX_CHARS_PER_LETTER = 4  # characters that a letter may have before it is composed
MAX_FACTS = 1000

# Unicode categories that a fact may not have (controls, lone surrogates, line separators), and that show nothing.
_REFUSED = {"Cc", "Cs", "Zl", "Zp"}
_INVISIBLE = {"Zs", "Cf"}
# The apostrophe before what a spreadsheet would take for a formula.
_FORMULA = re.compile(r"^\s*'(?='*[=+\-@])")

TABLES = MetaData()
_FACTS = Table(
    "facts",
    TABLES,
    Column("n", Integer, primary_key=True),  # keeps the order in which facts were added
    Column("id", String(32), nullable=False, unique=True),
    Column("user", String(200), nullable=False),
    Column("text", Text, nullable=False),
    Column("key", String(2 * MAX_FACT_CHARS), nullable=False),  # the text as duplicates are found by
    Column("source", String(200), nullable=False),
    Column("on", Boolean, nullable=False),
    Column("created", String(40), nullable=False),
    Column("changed", String(40), nullable=False),
    UniqueConstraint("user", "key"),
)
_FIELDS = Table(
    "fact_fields",
    TABLES,
    Column("fact", ForeignKey(_FACTS.c.id, ondelete="CASCADE"), primary_key=True),
    Column("field", String(32), nullable=False),
)
_WITH_FIELD = select(_FACTS, _FIELDS.c.field).select_from(_FACTS.outerjoin(_FIELDS, _FIELDS.c.fact == _FACTS.c.id))


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry that was not imported: its number (from 1: the line, or the place in the JSON list), and why."""

    number: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did."""

    added: tuple[Fact, ...] = ()
    skipped: tuple[Skipped, ...] = ()


class Ptkb:
    """The facts of all users, in a database. Safe to use from several threads.

    Every method that takes an id raises `FactError` if this user has no such fact, even if another user has it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def facts(self, user: str) -> list[Fact]:
        """The user's facts, in the order in which they were added."""
        with self._engine.connect() as connection:
            rows = connection.execute(_WITH_FIELD.where(_FACTS.c.user == user).order_by(_FACTS.c.n))
            return [_fact(row) for row in rows]

    def set_fields(self, user: str, fields: Mapping[str, str]) -> None:
        """Store the fields of facts, by their ids; facts that are gone are skipped."""
        with self._engine.begin() as connection:
            own_ids = select(_FACTS.c.id).where(_FACTS.c.user == user, _FACTS.c.id.in_(fields))
            connection.execute(own_ids.with_for_update())  # PostgreSQL: nobody changes these meanwhile
            connection.execute(delete(_FIELDS).where(_FIELDS.c.fact.in_(own_ids)))  # SQLite: nobody writes from here on
            rows = [{"fact": fact_id, "field": fields[fact_id]} for fact_id in connection.scalars(own_ids)]
            if rows:
                connection.execute(insert(_FIELDS), rows)

    def add(self, user: str, text: str, source: str = "typed") -> Fact:
        """Store a new fact.

        Raises:
            FactError: the text is empty, too long, has control characters or is known already, or there are too many
                facts.
        """
        with self._engine.begin() as connection:
            fact = _new_fact(text, source, database_time(connection))
            _insert(connection, user, fact)
        return fact

    def edit(self, user: str, fact_id: str, text: str) -> Fact:
        """Change a fact's text. Raises `FactError` as `add` does."""
        normalised = validated(text)
        return self._change(user, fact_id, text=normalised, key=comparison_key(normalised))

    def switch(self, user: str, fact_id: str, on: bool) -> Fact:
        """Let turns use a fact, or not."""
        return self._change(user, fact_id, on=on)

    def remove(self, user: str, fact_id: str) -> None:
        """Delete a fact."""
        with self._engine.begin() as connection:
            _delete(connection, user, fact_id)

    def remove_all(self, user: str) -> None:
        """Delete all facts of the user."""
        with self._engine.begin() as connection:
            connection.execute(delete(_FACTS).where(_FACTS.c.user == user))

    def replace(self, user: str, old_id: str, text: str, source: str) -> Fact:
        """Replace a fact by a new one that contradicts it and has its own id. Raises as `add` does."""
        with self._engine.begin() as connection:
            fact = _new_fact(text, source, database_time(connection))
            _delete(connection, user, old_id)
            _insert(connection, user, fact)
        return fact

    def restore(self, user: str, fact_id: str, old: Fact) -> None:
        """Put back a fact in place of the one that replaced it. Raises as `add` does."""
        with self._engine.begin() as connection:
            _delete(connection, user, fact_id)
            _insert(connection, user, old)

    def import_text(self, user: str, text: str) -> ImportReport:
        """Add one fact for each line, in one transaction; empty lines are skipped.

        Lines that can't be facts are skipped and reported, the others are added.
        """
        lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        numbered_lines = (
            (number, _FORMULA.sub("", line, count=1)) for number, line in enumerate(lines, 1) if line.strip()
        )
        entries = ((number, {"text": line}) for number, line in numbered_lines)
        return self._import(user, entries)

    def import_json(self, user: str, text: str) -> ImportReport:
        """Add the facts of a JSON list of texts, or of objects as `export_json` writes them, in one transaction.

        Entries that can't be facts are skipped and reported, the others are added. Of an object, only "text" is needed.

        Raises:
            FactError: `text` is not a JSON list.
        """
        try:
            entries = json.loads(text.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            raise FactError(f"The facts are not valid JSON ({error}).") from error
        if not isinstance(entries, list):
            raise FactError('The facts must be a JSON list of texts, or of objects with a "text".')
        return self._import(user, enumerate(entries, 1))

    def export_text(self, user: str) -> str:
        """The facts, one on each line, without state, source and times, for which see `export_json`.

        An apostrophe stands before what a spreadsheet would calculate; `import_text` removes it.
        """
        texts = (fact.text for fact in self.facts(user))
        return "".join(f"{chr(39) * _is_formula(text)}{text}\n" for text in texts)

    def export_json(self, user: str) -> str:
        """The facts as a JSON list of objects with id, text, on, source, created and changed (ISO 8601, UTC)."""
        entries = [
            {
                "id": fact.id,
                "text": fact.text,
                "on": fact.on,
                "source": fact.source,
                "created": fact.created.isoformat(),
                "changed": fact.changed.isoformat(),
            }
            for fact in self.facts(user)
        ]
        return json.dumps(entries, ensure_ascii=False, indent=2) + "\n"

    def _change(self, user: str, fact_id: str, **values: Any) -> Fact:
        is_own_fact = _is_own_fact(user, fact_id)
        with self._engine.begin() as connection, _duplicates_refused(values.get("text", "")):
            changed = database_time(connection).isoformat()
            connection.execute(update(_FACTS).where(is_own_fact).values(**values, changed=changed))
            if "text" in values:  # it may be about something else now
                own_fact_id = select(_FACTS.c.id).where(is_own_fact)
                connection.execute(delete(_FIELDS).where(_FIELDS.c.fact.in_(own_fact_id)))
            row = connection.execute(_WITH_FIELD.where(is_own_fact)).first()
        if row is None:
            raise _missing_error()
        return _fact(row)

    def _import(self, user: str, entries: Iterable[tuple[int, Any]]) -> ImportReport:
        added: dict[str, Fact] = {}
        skipped: list[Skipped] = []
        with self._engine.begin() as connection, _duplicates_refused("a fact of the import"):
            moment = database_time(connection)
            known_keys = set(connection.scalars(select(_FACTS.c.key).where(_FACTS.c.user == user)))
            for number, entry in entries:
                try:
                    fact = _from_entry(entry, moment)
                    _check_new(comparison_key(fact.text), {*known_keys, *added}, fact.text)
                    added[comparison_key(fact.text)] = fact
                except FactError as error:
                    skipped.append(Skipped(number, _preview(entry), str(error)))
            if added:
                connection.execute(insert(_FACTS), [_values(user, fact) for fact in added.values()])
        return ImportReport(tuple(added.values()), tuple(skipped))


def validated(text: str) -> str:
    """`text` as it is stored: NFC, single spaces, none around it.

    Raises:
        FactError: it is empty, too long, or has characters that can't be stored or shown.
    """
    normalised = re.sub(r"[ \t\r\n]+", " ", text).strip()
    # before it is composed, which takes time by the square of the length
    if len(normalised) > MAX_CHARS_PER_LETTER * MAX_FACT_CHARS:
        raise _too_long(normalised)
    normalised = unicodedata.normalize("NFC", normalised)
    if any(unicodedata.category(char) in _REFUSED for char in normalised):
        raise FactError("The fact has control characters or broken Unicode; remove them and try again.")
    if not any(unicodedata.category(char) not in _INVISIBLE for char in normalised):
        raise FactError("The fact is empty; write a sentence about yourself.")
    if len(normalised) > MAX_FACT_CHARS:
        raise _too_long(normalised)
    return normalised


def _is_formula(text: str) -> bool:
    return text.lstrip("'").startswith(("=", "+", "-", "@"))


def comparison_key(text: str) -> str:
    """A key that equal facts share: the words without case, spaces and punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("\u2019", "")
    words = "".join(" " if unicodedata.category(char).startswith("P") else char for char in folded).split()
    return " ".join(words)[: 2 * MAX_FACT_CHARS] or text


def _new_fact(text: str, source: str, moment: datetime) -> Fact:
    return Fact(new_id(), validated(text), moment, moment, source)


def _fact(row: Row[Any]) -> Fact:
    created, changed = datetime.fromisoformat(row.created), datetime.fromisoformat(row.changed)
    return Fact(row.id, row.text, created, changed, row.source, row.on, row.field or "")


def _values(user: str, fact: Fact) -> dict[str, Any]:
    return {
        "id": fact.id,
        "user": user,
        "text": fact.text,
        "key": comparison_key(fact.text),
        "source": fact.source,
        "on": fact.on,
        "created": fact.created.isoformat(),
        "changed": fact.changed.isoformat(),
    }


def _from_entry(entry: Any, moment: datetime) -> Fact:
    """The fact of one entry, imported at a moment. Its times and source are kept if they make sense."""
    fields = {"text": entry} if isinstance(entry, str) else entry
    if not isinstance(fields, dict) or not isinstance(fields.get("text"), str):
        raise FactError('The entry is neither a text nor an object with a "text".')
    fact = _new_fact(fields["text"], _preview(fields.get("source", "typed")), moment)
    created = _moment(fields.get("created"), moment)
    return replace(
        fact, on=fields.get("on") is not False, created=created, changed=_moment(fields.get("changed"), created)
    )


def _moment(value: Any, otherwise: datetime) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError):
        return otherwise


def _preview(entry: Any) -> str:
    text = entry.get("text", entry) if isinstance(entry, dict) else entry
    return str(text)[:100].encode("utf-8", "replace").decode()


def _is_own_fact(user: str, fact_id: str) -> ColumnElement[bool]:
    return (_FACTS.c.user == user) & (_FACTS.c.id == fact_id)


def _insert(connection: Connection, user: str, fact: Fact) -> None:
    with _duplicates_refused(fact.text):
        connection.execute(insert(_FACTS).values(_values(user, fact)))
    count = connection.scalar(select(func.count()).where(_FACTS.c.user == user))
    if count is not None and count > MAX_FACTS:
        raise _full_error()


def _delete(connection: Connection, user: str, fact_id: str) -> None:
    if connection.execute(delete(_FACTS).where(_is_own_fact(user, fact_id))).rowcount == 0:
        raise _missing_error()


def _check_new(new_key: str, known_keys: set[str], text: str) -> None:
    if new_key in known_keys:
        raise _known_error(text)
    if len(known_keys) >= MAX_FACTS:
        raise _full_error()


@contextmanager
def _duplicates_refused(text: str) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise _known_error(text) from error


def _too_long(text: str) -> FactError:
    return FactError(f"The fact has {len(text)} characters; at most {MAX_FACT_CHARS} can be stored, so split it up.")


def _known_error(text: str) -> FactError:
    return FactError(f"This is known already: {text}")


def _full_error() -> FactError:
    return FactError(f"There are {MAX_FACTS} facts already; remove one before adding another.")


def _missing_error() -> FactError:
    return FactError("There is no such fact; it may have been removed meanwhile.")
