"""How much each person has used, day by day: turns, tokens and seconds; nothing of what was said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from sqlalchemy import (
    Column,
    ColumnElement,
    Engine,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Update,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from assistant.store.shared import database_time
from assistant.store.users import MAX_NAME_CHARS
from assistant.types import Tokens

TABLES = MetaData()
_USAGE = Table(
    "usage",
    TABLES,
    Column("user", String(MAX_NAME_CHARS), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("turns", Integer, nullable=False),
    Column("read", Integer, nullable=False),
    Column("written", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
)
_ZEROS = {"turns": 0, "read": 0, "written": 0, "seconds": 0.0}


@dataclass(frozen=True, slots=True)
class UserUsage:
    """What one person used over some days: turns, tokens read and written, seconds; `last` is the last such day."""

    user: str
    turns: int
    read: int
    written: int
    seconds: float
    last: str


class Usage:
    """The usage of all people, by days in UTC of the database's clock. Safe to use from several threads, processes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, user: str, limit: int = 0) -> bool:
        """Record the beginning of a turn of this person, unless it exceeds the limit for today; 0 = no limit.

        Two that begin at once, in two processes as well, are never both the last that is allowed.
        """
        allowed = (_USAGE.c.turns < limit,) if limit else ()
        return self._add(user, {"turns": 1}, *allowed)

    def end(self, user: str, tokens: Tokens, seconds: float) -> None:
        """Record the cost of a turn that was begun."""
        self._add(user, {"read": tokens.prompt, "written": tokens.completion, "seconds": seconds})

    def of_all(self, days: int) -> list[UserUsage]:
        """What each person used in so many days including today; who used most comes first."""
        columns = [func.sum(column) for column in (_USAGE.c.turns, _USAGE.c.read, _USAGE.c.written, _USAGE.c.seconds)]
        query = select(_USAGE.c.user, *columns, func.max(_USAGE.c.day)).group_by(_USAGE.c.user)
        with self._engine.connect() as connection:
            first_day = max(database_time(connection).toordinal() - days + 1, date.min.toordinal())
            rows = connection.execute(query.where(_USAGE.c.day >= date.fromordinal(first_day).isoformat())).all()
        used = [UserUsage(row[0], int(row[1]), int(row[2]), int(row[3]), float(row[4]), row[5]) for row in rows]
        return sorted(used, key=lambda person: (-person.turns, person.user))

    def remove(self, user: str) -> None:
        """Delete this person's usage."""
        with self._engine.begin() as connection:
            connection.execute(delete(_USAGE).where(_USAGE.c.user == user))

    def _add(self, user: str, increments: Mapping[str, float], *allowed: ColumnElement[bool]) -> bool:
        """Add to today's figures if the limit allows it; returns whether it did."""
        day = self._today()
        new_values = {name: _USAGE.c[name] + value for name, value in increments.items()}
        statement = update(_USAGE).where(_USAGE.c.user == user, _USAGE.c.day == day, *allowed).values(**new_values)
        if self._update_matched(statement):
            return True
        try:
            with self._engine.begin() as connection:
                connection.execute(insert(_USAGE).values(user=user, day=day, **{**_ZEROS, **increments}))
        except IntegrityError:  # it is there: another was quicker, or it doesn't allow any more
            return self._update_matched(statement)
        return True

    def _update_matched(self, statement: Update) -> bool:
        with self._engine.begin() as connection:
            return connection.execute(statement).rowcount > 0

    def _today(self) -> str:
        with self._engine.connect() as connection:
            return database_time(connection).date().isoformat()
