"""The models that may answer: those of the catalogue, and those of servers that people added.

Added servers are stored in `models.json` in the data folder. The file holds keys, so only its owner can read it.
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

from assistant.errors import ModelError, disk_errors_as
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.load import AUTO, BY_PIP, SERVER
from assistant.llm.servers.address import root_of
from assistant.settings import LLMSettings, Settings

FILE = "models.json"
# The settings that name a model; whoever has set one of them has chosen a model.
NAMING = {"backend", "model", "server", "api_key"}
_MAX_LENGTH = 500


class KnownModel(BaseModel):
    """A model that may answer.

    `id` is unique, `title` and `about` are for people, and `llm` are the settings that it is loaded with.
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
    """A model of a server, as somebody added it. `model` is "auto" for the server's only model.

    `title` is that model's name when it was added, "" if the server didn't tell.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str
    model: str = Field(AUTO, min_length=1, max_length=_MAX_LENGTH)
    key: SecretStr = Field(SecretStr(""), max_length=_MAX_LENGTH)
    # less than the form accepts, since files of earlier releases may hold such values
    context: int | None = Field(None, ge=512)
    title: str = ""

    @field_serializer("key", when_used="json")
    def _written(self, key: SecretStr) -> str:
        return key.get_secret_value()


class _ModelsFile(BaseModel):
    """The content of the file. `chosen` is the id of the model that was switched to last, "" if none was."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    servers: tuple[AddedServer, ...] = ()
    chosen: str = ""


class KnownModels:
    """The models that the settings and the added servers name. Safe to use from several threads and processes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._file = settings.data_dir / FILE
        self._lock = Lock()

    def catalogue(self) -> list[tuple[Entry, KnownModel]]:
        """The catalogue's models that can write replies."""
        entries = Catalogue.load().entries
        return [(entry, self._of_catalogue(entry)) for entry in entries if entry.template]

    def here(self) -> list[KnownModel]:
        """The models that can answer without a download: the catalogue's that are on this disk, and all others."""
        catalogue = Catalogue.load()
        fetched = [model for entry, model in self.catalogue() if catalogue.is_here(entry.name, self._settings)]
        return [*fetched, *self._others()]

    def added(self) -> list[KnownModel]:
        """The models of added servers, the oldest first.

        One with an invalid address, which earlier releases accepted, is among them, so that it can be removed.

        Raises:
            ModelError: their file can't be read.
        """
        return [self._of_server_at(_stored_root(server), server) for server in self._read().servers]

    def of_server(self, server: AddedServer) -> KnownModel:
        """A server's model, whether it was added or not.

        Raises:
            ModelError: the address is invalid.
        """
        return self._of_server_at(root_of(server.address), server)

    def answering(self, name: str, requested: KnownModel) -> KnownModel:
        """The model whose engine has this name; it may be another than `requested`, for which it was loaded instead."""
        if requested.is_served:
            return requested
        for entry, model in self.catalogue():
            if name in {entry.name, entry.path(self._settings).stem}:
                return model
        return requested

    def settings(self, model: KnownModel) -> Settings:
        """The settings with which this model is loaded."""
        return self._settings.model_copy(update={"llm": model.llm})

    def find(self, id_: str) -> KnownModel:
        """The model of this id, with the key that was added for it.

        Raises:
            ModelError: there is none.
        """
        for model in (*self._others(), *(catalogue_model for _, catalogue_model in self.catalogue())):
            if model.id == id_:
                return model
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
        """The model that answers when Sequitur starts: the one that the settings name, else the one switched to last.

        If that one is no longer known, or can't be read, it is the settings' default.
        """
        llm = self._settings.llm
        if not llm.model_fields_set & NAMING:
            with suppress(ModelError):
                return self.find(self.chosen())
        return self.named()

    async def titled(self, server: AddedServer) -> AddedServer:
        """The server with the name of its only model as title, if no model was named and the server tells it.

        Raises:
            ModelError: the address is invalid.
        """
        from assistant.llm.servers.probe import only_model  # noqa: PLC0415 - takes a second to import

        llm = self.of_server(server).llm
        return server.model_copy(update={"title": await only_model(llm)}) if llm.model == AUTO else server

    def add(self, server: AddedServer) -> KnownModel:
        """Store a model of a server; the same one that was added before is replaced.

        Raises:
            ModelError: the address is invalid, or the file can't be read or written.
        """
        model = self.of_server(server)
        stored_server = server.model_copy(update={"address": model.llm.server})
        self._change(lambda content: {"servers": (*_without(content.servers, model.id), stored_server)})
        return model

    def remove(self, id_: str) -> None:
        """Forget a model of a server, and its key.

        Raises:
            ModelError: it was never added, or the file can't be read or written.
        """
        if id_ not in {model.id for model in self.added()}:
            raise ModelError(
                "This server is not among those that were added; the menu and `models servers list` show which are."
            )
        self._change(lambda content: {"servers": _without(content.servers, id_)})

    def choose(self, id_: str) -> None:
        """Let this model also answer after the next start.

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
        """The models of added servers, and the one that the settings name if it is not listed anywhere.

        A file that can't be read is ignored here; listing or adding servers reports it.
        """
        try:
            added = self.added()
        except ModelError:
            added = []
        named = self.named()
        listed_ids = {AUTO, *(model.id for model in added), *(model.id for _, model in self.catalogue())}
        return added if named.id in listed_ids else [*added, named]

    def _of_catalogue(self, entry: Entry) -> KnownModel:
        llm = self._llm(model=entry.name)
        return KnownModel(id=entry.name, title=entry.name, about=entry.about, llm=llm)

    def _of_server_at(self, root: str, server: AddedServer) -> KnownModel:
        llm = self._llm(backend=SERVER, server=root, model=server.model, api_key=server.key)
        if server.context:
            llm = llm.model_copy(update={"context": server.context})
        return _served(llm, server.title)

    def _llm(self, **naming: object) -> LLMSettings:
        """The settings with another model in place of the one that they name.

        A server's model has its own context, which is asked for there unless it was typed.
        """
        llm = self._settings.llm
        excluded = {"context"} if SERVER in {llm.backend, naming.get("backend")} else set()
        if llm.backend != SERVER and "backend" not in naming:
            naming["backend"] = llm.backend
        inherited = llm.model_dump(exclude=NAMING | excluded, exclude_unset=True)
        return LLMSettings.model_validate({**inherited, **naming})

    # --- the file ------------------------------------------------------------------------------------------------

    def _read(self) -> _ModelsFile:
        try:
            return _ModelsFile.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            return _ModelsFile()
        except (OSError, ValidationError) as error:
            raise ModelError(f"{self._file} can't be read; mend it, or delete it and add the servers again.") from error

    def _change(self, updates: Callable[[_ModelsFile], dict[str, object]]) -> None:
        with disk_errors_as(ModelError, f"{self._file} can't be written", "free space or set data_dir"):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._lock, file_lock(self._file):
                content = self._read()
                _write(self._file, content.model_copy(update=updates(content)))


def file_lock(file: Path) -> FileLock:
    """The lock that whoever changes this file of models holds meanwhile."""
    return FileLock(file.with_name(f"{file.name}.lock"))


def _served(llm: LLMSettings, title: str = "") -> KnownModel:
    """A model of a server; `title` is shown if its name was not chosen."""
    address = llm.server.partition("://")[2] or llm.server
    title = (title or address) if llm.model in {AUTO, BY_PIP} else llm.model
    return KnownModel(id=f"{llm.server} {llm.model}", title=title, about=f"server at {address}", llm=llm)


def _stored_root(server: AddedServer) -> str:
    """Where a stored server is; an invalid address stays as it is, for whoever asks there to tell."""
    try:
        return root_of(server.address)
    except ModelError:
        return server.address


def _without(servers: Sequence[AddedServer], id_: str) -> tuple[AddedServer, ...]:
    return tuple(server for server in servers if f"{server.address} {server.model}" != id_)


def _write(file: Path, content: _ModelsFile) -> None:
    """Replace the file in one step; a temporary file is its owner's alone from the start (mode 600)."""
    with NamedTemporaryFile("w", dir=file.parent, prefix=f"{FILE}.", delete=False, encoding="utf-8") as temporary:
        try:
            temporary.write(content.model_dump_json(indent=2))
            temporary.flush()
            os.fsync(temporary.fileno())
            Path(temporary.name).replace(file)
        except BaseException:
            Path(temporary.name).unlink(missing_ok=True)
            raise
