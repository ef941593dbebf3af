"""Keeps conversations, their turns, feedback and each user's choices in a database.

A turn is stored whole, as the JSON of `Turn.to_json`, so that an old turn shows all that it showed when it was new.
A message that was answered again has several turns, versions of one reply, of which one is shown: the conversation goes
on from that one, and the others are kept.
Temporary conversations are held in memory, in no list, and go when they are left; at the latest, an hour after the last
message and another one is begun, or with the program.
Users see only their own things: every method takes the user, and an id of another's is "not found".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Row,
    Select,
    String,
    Table,
    Text,
    case,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from assistant.errors import StoreError
from assistant.store import export as markdown
from assistant.store import older_turns
from assistant.store.database import in_memory, upsert
from assistant.store.shared import answered_by, database_time, process_id
from assistant.text.sentences import clean
from assistant.types import Answer, Turn, new_id

TITLE_CHARS = 60
Feedback = Literal[-1, 0, 1]

TABLES = MetaData()
_CONVERSATIONS = Table(
    "conversations",
    TABLES,
    Column("n", Integer, primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("user", String(200), nullable=False, index=True),
    Column("title", String(200), nullable=False),
    Column("created", String(40), nullable=False),
    Column("changed", String(40), nullable=False),
)
_TURNS = Table(
    "turns",
    TABLES,
    Column("n", Integer, primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("conversation", ForeignKey(_CONVERSATIONS.c.id, ondelete="CASCADE"), nullable=False),
    Column("process", String(32), nullable=False),
    Column("utterance", Text, nullable=False),
    Column("reply", Text, nullable=False),
    Column("words", Text, nullable=False),  # utterance and reply in folded case, to search in
    Column("feedback", Integer, nullable=False, default=0),
    Column("turn", Text, nullable=False),
    Index("turns_of", "conversation", "n"),
)
_VERSIONS = Table(
    "versions",
    TABLES,
    Column("turn", ForeignKey(_TURNS.c.id, ondelete="CASCADE"), primary_key=True),
    # The turn that answered first. It is a version, too, and its place in the conversation is that of all versions.
    Column("original", ForeignKey(_TURNS.c.id, ondelete="CASCADE"), nullable=False, index=True),
    Column("shown", Integer, nullable=False),
    Column("side", Integer, nullable=False),
)
_VERSION_OF = _VERSIONS.c.turn == _TURNS.c.id
_USES = Table(
    "uses",
    TABLES,
    Column("turn", ForeignKey(_TURNS.c.id, ondelete="CASCADE"), primary_key=True),
    Column("fact", String(32), primary_key=True, index=True),
)
_PREFERENCES = Table(
    "preferences", TABLES, Column("user", String(200), primary_key=True), Column("choices", Text, nullable=False)
)


# The prefix of the ids of temporary conversations, and how long an unused one is held.
TEMPORARY = "temporary-"
_TEMPORARY_LIFETIME = timedelta(hours=1)


def is_temporary(conversation_id: str) -> bool:
    """Whether this is the id of a conversation that is not stored."""
    return conversation_id.startswith(TEMPORARY)


@dataclass(frozen=True, slots=True)
class MessageLink:
    """A message in a conversation, as links to it show it."""

    conversation: str
    turn: str
    utterance: str


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation as lists show it; `turns` is the number of its turns."""

    id: str
    title: str
    created: datetime
    changed: datetime
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Version:
    """Marks a turn as another answer to the message of turn `of`; `side` is 1 or 2 while two are compared."""

    of: str
    side: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation with its turns, oldest first; `feedback` maps turn ids to 1 or -1, where there is any.

    Of a reply with several versions `turns` holds the one that is shown. `versions` maps its id to the ids of all of
    them, in the order in which they were written; `compared` to those that are being compared, at most two.
    """

    id: str
    title: str
    created: datetime
    changed: datetime
    turns: tuple[Turn, ...] = ()
    feedback: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    compared: Mapping[str, tuple[Turn, ...]] = field(default_factory=dict)

    def position_of(self, turn_id: str) -> int:
        """The index in `turns` of the reply that this turn is, or is a version of; -1 for none."""
        numbered_turns = enumerate(self.turns)
        return next((n for n, turn in numbered_turns if turn_id in (turn.id, *self.versions.get(turn.id, ()))), -1)


class Conversations:
    """All users' conversations. Safe to use from several threads.

    Every method that takes an id raises `StoreError` where the user has no such conversation or turn.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine, self._memory = engine, in_memory(TABLES)

    def new(self, user: str, title: str = "", *, temporary: bool = False) -> Conversation:
        """Begin a conversation; without a title it gets one from its first utterance."""
        id_ = f"{TEMPORARY if temporary else ''}{new_id()}"
        with self._of(id_).begin() as connection:
            moment = database_time(connection)
            conversation = Conversation(id_, _shortened(title), moment, moment)
            if temporary:
                expired = (_CONVERSATIONS.c.user == user) & (
                    _CONVERSATIONS.c.changed < _stamp(moment - _TEMPORARY_LIFETIME)
                )
                connection.execute(delete(_CONVERSATIONS).where(expired))
            times = {"created": _stamp(moment), "changed": _stamp(moment)}
            connection.execute(
                insert(_CONVERSATIONS).values(id=conversation.id, user=user, title=conversation.title, **times)
            )
        return conversation

    def list(self, user: str, search: str = "") -> list[ConversationSummary]:
        """The user's conversations, the latest first; with `search`, those that contain it in title or text."""
        is_original = _VERSIONS.c.original.is_(None) | (_VERSIONS.c.original == _TURNS.c.id)
        replies = select(func.count()).select_from(_TURNS.outerjoin(_VERSIONS, _VERSION_OF)).where(is_original)
        count = replies.where(_TURNS.c.conversation == _CONVERSATIONS.c.id).scalar_subquery()
        query = select(_CONVERSATIONS, count.label("turns")).where(_CONVERSATIONS.c.user == user)
        search_text = clean(search).casefold()
        with self._engine.connect() as connection:
            rows = connection.execute(query.order_by(_CONVERSATIONS.c.changed.desc(), _CONVERSATIONS.c.n.desc())).all()
            matching_ids = _mentioning(connection, user, search_text) if search_text else set()
        return [
            _summary(row)
            for row in rows
            if not search_text or row.id in matching_ids or search_text in row.title.casefold()
        ]

    def get(self, user: str, conversation_id: str) -> Conversation:
        """The conversation with its turns. Turns that a killed process left running count as stopped."""
        with self._of(conversation_id).connect() as connection:
            row = _owned(connection, user, conversation_id)
            columns = (_TURNS, _VERSIONS.c.original, _VERSIONS.c.shown, _VERSIONS.c.side)
            query = select(*columns).select_from(_TURNS.outerjoin(_VERSIONS, _VERSION_OF)).order_by(_TURNS.c.n)
            turns = connection.execute(query.where(_TURNS.c.conversation == conversation_id)).all()
            alive = {process_id(), "" if is_temporary(conversation_id) else answered_by(connection, conversation_id)}
        return _conversation(row, turns, alive)

    def rename(self, user: str, conversation_id: str, title: str) -> None:
        """Give the conversation another title, cut at 60 characters.

        Raises:
            StoreError: the title is empty.
        """
        shortened = _shortened(title)
        if not shortened:
            raise StoreError("The title is empty; write a few words.")
        with self._of(conversation_id).begin() as connection:
            renamed = update(_CONVERSATIONS).where(_own_conversation(user, conversation_id)).values(title=shortened)
            _expect(connection.execute(renamed).rowcount, "conversation")

    def delete(self, user: str, conversation_id: str) -> None:
        """Delete the conversation with all its turns."""
        with self._of(conversation_id).begin() as connection:
            result = connection.execute(delete(_CONVERSATIONS).where(_own_conversation(user, conversation_id)))
            _expect(result.rowcount, "conversation")

    def remove_all(self, user: str) -> None:
        """Delete all conversations of the user, temporary ones too, and the user's choices."""
        for engine in (self._engine, self._memory):
            with engine.begin() as connection:
                connection.execute(delete(_CONVERSATIONS).where(_CONVERSATIONS.c.user == user))
                connection.execute(delete(_PREFERENCES).where(_PREFERENCES.c.user == user))

    def save_turn(self, user: str, conversation_id: str, turn: Turn, version: Version | None = None) -> None:
        """Store a turn, or replace the one with its id; the conversation becomes the newest.

        As a `version` it is kept beside the turn that it answers again, which goes on being shown: see `choose`.
        """
        values = _values(turn)
        with self._of(conversation_id).begin() as connection:
            changed = _stamp(database_time(connection))
            touched = update(_CONVERSATIONS).where(_own_conversation(user, conversation_id)).values(changed=changed)
            _expect(connection.execute(touched).rowcount, "conversation")
            _upsert(connection, conversation_id, turn.id, values)
            _note_uses(connection, turn)
            if version:
                _note_version(connection, conversation_id, turn.id, version)
            untitled = _own_conversation(user, conversation_id) & (_CONVERSATIONS.c.title == "")
            connection.execute(update(_CONVERSATIONS).where(untitled).values(title=_shortened(turn.utterance)))

    def remove_turn(self, user: str, conversation_id: str, turn_id: str) -> None:
        """Take a turn out of the conversation with all its versions, as undo does.

        What gave an emptied conversation its title goes too: undone words stay neither in the list nor in an export.
        """
        in_conversation, of_reply = _TURNS.c.conversation == conversation_id, _versions(conversation_id, turn_id)
        with self._of(conversation_id).begin() as connection:
            _owned(connection, user, conversation_id)
            titles = {
                _shortened(utterance) for utterance in connection.scalars(select(_TURNS.c.utterance).where(of_reply))
            }
            _expect(connection.execute(delete(_TURNS).where(of_reply)).rowcount, "turn")
            emptied = _own_conversation(user, conversation_id) & ~select(_TURNS.c.n).where(in_conversation).exists()
            titled_so = emptied & _CONVERSATIONS.c.title.in_(titles)
            connection.execute(update(_CONVERSATIONS).where(titled_so).values(title=""))

    def choose(self, user: str, conversation_id: str, turn_id: str) -> None:
        """Show this version of a reply; this ends a comparison, of which a version without a text is deleted."""
        with self._of(conversation_id).begin() as connection:
            _owned(connection, user, conversation_id)
            original = _original(connection, conversation_id, turn_id)
            of_reply = _VERSIONS.c.original == original
            sides = select(_VERSIONS.c.turn).where(of_reply, _VERSIONS.c.side > 0, _VERSIONS.c.turn != turn_id)
            connection.execute(delete(_TURNS).where(_TURNS.c.id.in_(sides), _TURNS.c.reply == ""))
            shown = case((_VERSIONS.c.turn == turn_id, 1), else_=0)
            connection.execute(update(_VERSIONS).where(of_reply).values(shown=shown, side=0))

    def versions(self, user: str, conversation_id: str, turn_id: str) -> tuple[Turn, ...]:
        """All versions of a reply as they are stored, in the order in which they were written; most have but one."""
        with self._of(conversation_id).connect() as connection:
            _owned(connection, user, conversation_id)
            query = select(_TURNS).where(_versions(conversation_id, turn_id)).order_by(_TURNS.c.n)
            return tuple(_turn(row, {process_id()}) for row in connection.execute(query))

    def discard(self, user: str, conversation_id: str, turn_id: str) -> None:
        """Delete this version of a reply, unless it is the one that is shown."""
        hidden = select(_VERSIONS.c.turn).where(_VERSIONS.c.turn == turn_id, _VERSIONS.c.shown == 0)
        with self._of(conversation_id).begin() as connection:
            _owned(connection, user, conversation_id)
            in_conversation = _TURNS.c.conversation == conversation_id
            connection.execute(delete(_TURNS).where(_TURNS.c.id.in_(hidden), in_conversation))

    def feedback(self, user: str, turn_id: str, value: Feedback) -> None:
        """Store the user's feedback on a turn: 1 good, -1 bad, 0 none."""
        if value not in (-1, 0, 1):
            raise StoreError("Feedback is 1 (good), -1 (bad) or 0 (none).")
        own_conversations = select(_CONVERSATIONS.c.id).where(_CONVERSATIONS.c.user == user)
        of_turn = (_TURNS.c.id == turn_id) & _TURNS.c.conversation.in_(own_conversations)
        with self._engine.begin() as connection:
            _expect(connection.execute(update(_TURNS).where(of_turn).values(feedback=value)).rowcount, "turn")

    def message_links(self, user: str, turn_ids: Iterable[str]) -> dict[str, MessageLink]:
        """The messages of these turns, as far as they still exist."""
        query = _spots(user).where(_TURNS.c.id.in_(set(turn_ids)))
        with self._engine.connect() as connection:
            return {row.id: MessageLink(row.conversation, row.id, row.utterance) for row in connection.execute(query)}

    def last_uses(self, user: str) -> dict[str, MessageLink]:
        """For each fact that a reply depended on, by its id, the message of the newest such turn."""
        query = _spots(user).add_columns(_USES.c.fact).join(_USES, _USES.c.turn == _TURNS.c.id).order_by(_TURNS.c.n)
        with self._engine.connect() as connection:
            return {row.fact: MessageLink(row.conversation, row.id, row.utterance) for row in connection.execute(query)}

    def export_markdown(self, user: str, conversation_id: str) -> str:
        """The conversation as Markdown: each utterance, its reply, and the numbered sources with what was quoted."""
        conversation = self.get(user, conversation_id)
        return markdown.document(conversation.title, conversation.turns)

    def _of(self, conversation_id: str) -> Engine:
        """The engine of the database that holds a conversation."""
        return self._memory if is_temporary(conversation_id) else self._engine

    def preferences(self, user: str) -> dict[str, Any]:
        """The user's choices on the page; empty if there are none."""
        with self._engine.connect() as connection:
            stored = connection.scalar(select(_PREFERENCES.c.choices).where(_PREFERENCES.c.user == user))
        return dict(json.loads(stored)) if stored else {}

    def set_preferences(self, user: str, preferences: Mapping[str, Any]) -> None:
        """Store the user's choices, which must be serialisable as JSON, in place of the earlier ones."""
        choices = json.dumps(dict(preferences))
        with self._engine.begin() as connection:
            upsert(connection, _PREFERENCES, {"user": user}, choices=choices)


def _upsert(connection: Connection, conversation_id: str, turn_id: str, values: dict[str, Any]) -> None:
    of_turn = (_TURNS.c.id == turn_id) & (_TURNS.c.conversation == conversation_id)
    if connection.execute(update(_TURNS).where(of_turn).values(values)).rowcount:
        return
    try:
        connection.execute(insert(_TURNS).values(id=turn_id, conversation=conversation_id, **values))
    except IntegrityError as error:
        raise StoreError("This turn belongs to another conversation and was not saved again.") from error


def _note_uses(connection: Connection, turn: Turn) -> None:
    """Record which facts the reply of a finished turn depends on."""
    if turn.status != "done":
        return
    connection.execute(delete(_USES).where(_USES.c.turn == turn.id))
    rows = [{"turn": turn.id, "fact": fact.id} for fact in turn.reasons if fact.stored]
    if rows:
        connection.execute(insert(_USES), rows)


def _spots(user: str) -> Select[Any]:
    """A query for a user's turns, with what links show of them."""
    columns = (_TURNS.c.id, _TURNS.c.conversation, _TURNS.c.utterance)
    return select(*columns).join(_CONVERSATIONS).where(_CONVERSATIONS.c.user == user)


def _note_version(connection: Connection, conversation_id: str, turn_id: str, version: Version) -> None:
    """Make a turn a version of another, if it isn't one yet; the first version is shown until one is chosen."""
    if connection.scalar(select(_VERSIONS.c.turn).where(_VERSIONS.c.turn == turn_id)):
        return
    original = _original(connection, conversation_id, version.of)
    if not connection.scalar(select(_VERSIONS.c.turn).where(_VERSIONS.c.turn == original)):
        connection.execute(insert(_VERSIONS).values(turn=original, original=original, shown=1, side=0))
    connection.execute(insert(_VERSIONS).values(turn=turn_id, original=original, shown=0, side=version.side))


def _original(connection: Connection, conversation_id: str, turn_id: str) -> str:
    """The first version of a reply."""
    original = func.coalesce(_VERSIONS.c.original, _TURNS.c.id)
    query = select(original).select_from(_TURNS.outerjoin(_VERSIONS, _VERSION_OF))
    original_id = connection.scalar(query.where(_TURNS.c.id == turn_id, _TURNS.c.conversation == conversation_id))
    if original_id is None:
        raise _missing("reply")
    return str(original_id)


def _conversation(row: Row[Any], turns: Sequence[Row[Any]], alive: set[str]) -> Conversation:
    """A conversation, from its row and those of its turns in their order. Versions that aren't shown are not parsed.

    What processes that aren't `alive` left running has stopped.
    """
    replies: dict[str, list[Row[Any]]] = {}
    for turn in turns:
        replies.setdefault(turn.original or turn.id, []).append(turn)
    shown = {
        next((version.id for version in group if version.shown), first_id): group for first_id, group in replies.items()
    }
    sides = {turn: tuple(_turn(version, alive) for version in group if version.side) for turn, group in shown.items()}
    summary = _summary(row)
    return Conversation(
        summary.id,
        summary.title,
        summary.created,
        summary.changed,
        turns=tuple(_turn(version, alive) for turn, group in shown.items() for version in group if version.id == turn),
        feedback={turn.id: turn.feedback for turn in turns if turn.feedback},
        versions={turn: tuple(version.id for version in group) for turn, group in shown.items() if len(group) > 1},
        compared={turn: pair for turn, pair in sides.items() if pair},
    )


def _values(turn: Turn) -> dict[str, Any]:
    try:
        text = turn.to_json()
    except PydanticSerializationError:  # a lone surrogate, which UTF-8 has no bytes for
        turn = replace(turn, utterance=clean(turn.utterance), question=clean(turn.question), draft=clean(turn.draft))
        text = turn.to_json()
    reply = turn.answer.text if turn.answer else ""
    texts = {"utterance": turn.utterance, "reply": reply, "words": f"{turn.utterance}\n{reply}".casefold()}
    # PostgreSQL can't store NUL; in the JSON it is escaped.
    return {"process": process_id(), "turn": text, **{name: value.replace("\0", "") for name, value in texts.items()}}


def _turn(row: Row[Any], alive: set[str]) -> Turn:
    try:
        turn = older_turns.read(row.turn)
    except ValidationError:
        answer = Answer(row.reply) if row.reply else None
        error = "The details of this turn can't be read; its text was kept."
        return Turn(row.utterance, id=row.id, status="failed", answer=answer, error=error)
    return replace(turn, status="stopped") if turn.status == "running" and row.process not in alive else turn


def _versions(conversation_id: str, turn_id: str) -> ColumnElement[bool]:
    """The condition of rows that are this turn, or versions of the same reply."""
    original = select(_VERSIONS.c.original).where(_VERSIONS.c.turn == turn_id).scalar_subquery()
    versions = select(_VERSIONS.c.turn).where(_VERSIONS.c.original == original)
    return (_TURNS.c.conversation == conversation_id) & ((_TURNS.c.id == turn_id) | _TURNS.c.id.in_(versions))


def _mentioning(connection: Connection, user: str, search_text: str) -> set[str]:
    matches = _TURNS.c.words.contains(search_text[:1000], autoescape=True)
    query = select(_TURNS.c.conversation).join(_CONVERSATIONS).where(_CONVERSATIONS.c.user == user, matches)
    return set(connection.scalars(query))


def _owned(connection: Connection, user: str, conversation_id: str) -> Row[Any]:
    row = connection.execute(select(_CONVERSATIONS).where(_own_conversation(user, conversation_id))).first()
    if row is None:
        raise _missing("conversation")
    return row


def _own_conversation(user: str, conversation_id: str) -> ColumnElement[bool]:
    return (_CONVERSATIONS.c.user == user) & (_CONVERSATIONS.c.id == conversation_id)


def _expect(rows: int, noun: str) -> None:
    if not rows:
        raise _missing(noun)


def _missing(noun: str) -> StoreError:
    return StoreError(f"The {noun} was not found; it may have been deleted meanwhile.")


def _summary(row: Row[Any]) -> ConversationSummary:
    created, changed = datetime.fromisoformat(row.created), datetime.fromisoformat(row.changed)
    return ConversationSummary(row.id, row.title, created, changed, getattr(row, "turns", 0))


def _shortened(title: str) -> str:
    single_line = " ".join(clean(title).split())
    if len(single_line) <= TITLE_CHARS:
        return single_line
    return single_line[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"


def _stamp(moment: datetime) -> str:
    # Always with microseconds, so that the texts sort as the moments do.
    return moment.isoformat(timespec="microseconds")
