"""The models that may answer: those of the catalogue, of servers that people added, and of servers found here.

What people add is kept in `models.json` of the data folder, which nobody else can read, since it holds keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_serializer

from assistant.errors import ModelError
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.load import AUTO, BY_PIP, SERVER
from assistant.llm.servers.address import root_of
from assistant.settings import LLMSettings, Settings

FILE = "models.json"
# What names a model in the settings; whoever set one of them has chosen.
NAMING = {"backend", "model", "server", "api_key"}
_LONGEST = 500


class KnownModel(BaseModel):
    """A model that may answer.

    `id` tells it from all others, `title` and `about` are for people, and `llm` are the settings that it is loaded by.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    title: str
    about: str
    llm: LLMSettings

    @property
    def is_served(self) -> bool:
        """Whether a server runs it."""
        return self.llm.backend == SERVER


class AddedServer(BaseModel):
    """A model of a server, as somebody added it. `model` is "auto" for the server's only one.

    `title` is what that one was called then, "" where it could not be told.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str
    model: str = Field(AUTO, min_length=1, max_length=_LONGEST)
    key: SecretStr = Field(SecretStr(""), max_length=_LONGEST)
    # less than is taken where it is typed, since files of earlier releases may hold it
    context: int | None = Field(None, ge=512)
    title: str = ""

    @field_serializer("key", when_used="json")
    def _written(self, key: SecretStr) -> str:
        return key.get_secret_value()


class _Kept(BaseModel):
    """The file. `chosen` is the id of the model that was switched to last, "" where the settings name it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    servers: tuple[AddedServer, ...] = ()
    chosen: str = ""


class KnownModels:
    """The models that these settings and people's additions name. Safe to use from several threads and processes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._file = settings.data_dir / FILE
        self._lock = Lock()

    def catalogue(self) -> list[tuple[Entry, KnownModel]]:
        """The catalogue's models that can write replies."""
        entries = Catalogue.load().entries
        return [(entry, self._of_catalogue(entry)) for entry in entries if entry.template]

    def here(self) -> list[KnownModel]:
        """What can answer without anything being fetched: the catalogue's models that are here, and all others."""
        catalogue = Catalogue.load()
        fetched = [known for entry, known in self.catalogue() if catalogue.is_here(entry.name, self._settings)]
        return [*fetched, *self._others()]

    def added(self) -> list[KnownModel]:
        """The models of servers that people added, the oldest first.

        Raises:
            ModelError: the file they are kept in can't be read.
        """
        return [self.of_server(server) for server in self._read().servers]

    def of_server(self, server: AddedServer) -> KnownModel:
        """A model of a server, whether it was added or not.

        Raises:
            ModelError: the address is none.
        """
        root = root_of(server.address)
        llm = self._llm(backend=SERVER, server=root, model=server.model, api_key=server.key)
        if server.context:
            llm = llm.model_copy(update={"context": server.context})
        return _served(llm, server.title)

    def answering(self, name: str, asked: KnownModel) -> KnownModel:
        """Which model it is whose engine has this name, where `asked` may have given way to another."""
        if asked.is_served:
            return asked
        for entry, known in self.catalogue():
            if name in {entry.name, entry.path(self._settings).stem}:
                return known
        return asked

    def settings(self, known: KnownModel) -> Settings:
        """The settings that load this model."""
        return self._settings.model_copy(update={"llm": known.llm})

    def find(self, id_: str) -> KnownModel:
        """The model of this id, with the key that was added for it.

        Raises:
            ModelError: there is none.
        """
        for one in (*self._others(), *(known for _, known in self.catalogue())):
            if one.id == id_:
                return one
        raise ModelError(f"'{id_[:100]}' is not known any more; open the menu again to see what is.")

    def named(self) -> KnownModel:
        """The model that the settings name."""
        llm = self._settings.llm
        if llm.backend == SERVER:
            return _served(llm)
        if llm.model == AUTO:
            return KnownModel(id=AUTO, title="the usual model", about="what suits this computer", llm=llm)
        try:
            entry = Catalogue.load().entry(llm.model)
        except ModelError:  # a path
            return KnownModel(id=llm.model, title=Path(llm.model).name, about="named in the settings", llm=llm)
        return KnownModel(id=entry.name, title=entry.name, about=entry.about, llm=llm)

    def at_start(self) -> KnownModel:
        """What answers when Sequitur starts: what the settings name, else what was switched to last.

        A choice that isn't known any more, or can't be read, gives way to the settings' default.
        """
        llm = self._settings.llm
        if not llm.model_fields_set & NAMING:
            with suppress(ModelError):
                return self.find(self.chosen())
        return self.named()

    async def titled(self, server: AddedServer) -> AddedServer:
        """The server with what its only model is called, where none was named and it tells.

        Raises:
            ModelError: the address is none.
        """
        from assistant.llm.servers.probe import only_model  # noqa: PLC0415 - takes a second to import

        llm = self.of_server(server).llm
        return server.model_copy(update={"title": await only_model(llm)}) if llm.model == AUTO else server

    def add(self, server: AddedServer) -> KnownModel:
        """Keep a model of a server; one that was added before is replaced.

        Raises:
            ModelError: the address is none, or the file can't be read or written.
        """
        known = self.of_server(server)
        kept = server.model_copy(update={"address": known.llm.server})
        self._change(lambda old: {"servers": (*_without(old.servers, known.id), kept)})
        return known

    def remove(self, id_: str) -> None:
        """Forget a model of a server, and its key.

        Raises:
            ModelError: nobody added it, or the file can't be read or written.
        """
        if id_ not in {known.id for known in self.added()}:
            raise ModelError("This server is not among those that were added; open the menu again to see which are.")
        self._change(lambda old: {"servers": _without(old.servers, id_)})

    def choose(self, id_: str) -> None:
        """Let this model answer after the next start, too.

        Raises:
            ModelError: the file can't be read or written.
        """
        self._change(lambda _: {"chosen": id_})

    def chosen(self) -> str:
        """The id of the model that was switched to last, by any process; "" where none was, or it can't be read."""
        try:
            return self._read().chosen
        except ModelError:
            return ""

    def _others(self) -> list[KnownModel]:
        """The models of added servers, and what the settings name where it is none of these and not of the catalogue.

        A file that can't be read is told of where servers are listed and added.
        """
        try:
            added = self.added()
        except ModelError:
            added = []
        own = self.named()
        elsewhere = {AUTO, *(known.id for known in added), *(known.id for _, known in self.catalogue())}
        return added if own.id in elsewhere else [*added, own]

    def _of_catalogue(self, entry: Entry) -> KnownModel:
        llm = self._llm(model=entry.name)
        return KnownModel(id=entry.name, title=entry.name, about=entry.about, llm=llm)

    def _llm(self, **naming: object) -> LLMSettings:
        """The settings, with another model in the place of the one that they name.

        The context goes with a model of a server: another server's is asked for, unless it is typed.
        """
        usual = self._settings.llm
        other = {"context"} if SERVER in {usual.backend, naming.get("backend")} else set()
        if usual.backend != SERVER and "backend" not in naming:
            naming["backend"] = usual.backend
        kept = usual.model_dump(exclude=NAMING | other, exclude_unset=True)
        return LLMSettings.model_validate({**kept, **naming})

    # --- the file ------------------------------------------------------------------------------------------------

    def _read(self) -> _Kept:
        try:
            return _Kept.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return _Kept()
        except (OSError, ValidationError) as error:
            raise ModelError(f"{self._file} can't be read; mend it, or delete it and add the servers again.") from error

    def _change(self, updates: Callable[[_Kept], dict[str, object]]) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._lock, FileLock(self._file.with_name(f"{FILE}.lock")):
                kept = self._read()
                _write(self._file, kept.model_copy(update=updates(kept)))
        except OSError as error:
            raise ModelError(
                f"{self._file} can't be written ({error.strerror}); free space or set data_dir."
            ) from error


def _served(llm: LLMSettings, title: str = "") -> KnownModel:
    """A model of a server; `title` is what it is called where its name is not chosen."""
    place = llm.server.partition("://")[2] or llm.server
    title = (title or place) if llm.model in {AUTO, BY_PIP} else llm.model
    return KnownModel(id=f"{llm.server} {llm.model}", title=title, about=f"server at {place}", llm=llm)


def _without(servers: Sequence[AddedServer], id_: str) -> tuple[AddedServer, ...]:
    return tuple(one for one in servers if f"{one.address} {one.model}" != id_)


def _write(file: Path, kept: _Kept) -> None:
    """Replace the file in one step; a temporary file is its owner's alone from the start (mode 600)."""
    with NamedTemporaryFile("w", dir=file.parent, prefix=f"{FILE}.", delete=False, encoding="utf-8") as fresh:
        try:
            fresh.write(kept.model_dump_json(indent=2))
            fresh.flush()
            os.fsync(fresh.fileno())
            Path(fresh.name).replace(file)
        except BaseException:
            Path(fresh.name).unlink(missing_ok=True)
            raise
