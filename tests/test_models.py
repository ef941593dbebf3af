"""The language model in use: switching, what turns keep meanwhile, and what happens where it can't be loaded."""

from __future__ import annotations

import asyncio
import json
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import psutil
import pytest
from click.testing import Result
from pydantic import SecretStr
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.chat import Chat
from assistant.errors import ModelError
from assistant.llm import speed_test
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.engines import server
from assistant.llm.idle_speed_test import IdleSpeedTest
from assistant.llm.known_models import FILE, AddedServer, KnownModels
from assistant.llm.models import Models
from assistant.llm.reply_speed import ReplySpeed, TimedLLM
from assistant.llm.servers.probe import absences
from assistant.llm.sources import Hub
from assistant.llm.speed_test import is_measured, speeds
from assistant.protocols import Engine, Parts, Progress, silent
from assistant.settings import LLMSettings, Settings
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.types import Choices, Completion, Message, Options, Wait
from ptkb.store import Ptkb
from tests.hub import StandInHub, stand_in_hub
from tests.scripted import ScriptedLLM
from tests.servers import KEY, Reply, Request, StandIn, lm_studio, plain, vllm
from tests.sources import Given

HERE = "http://127.0.0.1:9999"
QUICK, SLOW, BROKEN = f"{HERE} quick", f"{HERE} slow", f"{HERE} broken"


def settings_in(folder: Path, **llm: object) -> Settings:
    return Settings(data_dir=folder, hub=False, llm=LLMSettings.model_validate(llm))


class Loaded(ScriptedLLM):
    """An engine that notes when it is unloaded."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.closed = name, False

    def close(self) -> None:
        self.closed = True


class Loads:
    """Makes engines; a "slow" one once `go` is set, a "broken" one never."""

    def __init__(self) -> None:
        self.go, self.made = Event(), list[Loaded]()

    def __call__(self, settings: Settings, progress: Progress, tell: Callable[[str], None]) -> Engine:
        if settings.llm.model == "broken":
            raise ModelError("No server answers there; start it.")
        if settings.llm.model == "bug":
            raise RuntimeError("oh")
        if settings.llm.model == "slow":
            progress(1, 4)
            assert self.go.wait(10)
        self.made.append(Loaded(settings.llm.model))
        return self.made[-1]


@pytest.fixture
def loads() -> Loads:
    return Loads()


@pytest.fixture
def models(tmp_path: Path, loads: Loads, monkeypatch: pytest.MonkeyPatch) -> Models:
    """ "first" runs, and four others are known."""
    monkeypatch.setattr("assistant.llm.load.load_or_fall_back", loads)
    models = Models(settings_in(tmp_path, backend="server", server=HERE, model="first"), loads)
    for name in ("quick", "slow", "broken", "bug"):
        models.known.add(AddedServer(address=HERE, model=name))
    models.open(models.known.at_start(), silent)
    return models


def nothing() -> None:
    pass


def until(true: Callable[[], object]) -> None:
    for _ in range(200):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come about in four seconds")


def switched(models: Models, id_: str) -> None:
    models.switch(id_)
    assert models.loaded(5, id_)


def test_the_next_turn_has_the_new_model_and_one_that_runs_keeps_its_own(models: Models, loads: Loads) -> None:
    with models.lent("me") as old:
        switched(models, QUICK)
        with models.lent("me") as new:
            assert (old.name, new.name) == ("first", "quick")
        assert not loads.made[0].closed
    assert loads.made[0].closed
    assert not loads.made[1].closed
    assert models.running
    assert models.running.known.id == QUICK


def test_a_model_that_no_turn_has_in_hand_is_unloaded_at_once(models: Models, loads: Loads) -> None:
    with models.lent("me"), models.lent("ann"):
        pass
    switched(models, QUICK)
    until(lambda: loads.made[0].closed)


def test_the_old_one_answers_while_another_is_loaded_and_only_one_is_loaded_at_a_time(
    models: Models, loads: Loads
) -> None:
    models.switch(SLOW)
    until(lambda: models.change and models.change.fraction == 0.25)
    assert (models.waiting().name, models.waiting().done) == ("slow", 25)
    with models.lent("me") as llm:
        assert llm.name == "first"
    assert models.loaded(0)
    assert not models.loaded(0, SLOW)
    with pytest.raises(ModelError, match="slow is being loaded; wait until that is done"):
        models.switch(QUICK)
    loads.go.set()
    assert models.loaded(5, SLOW)
    with models.lent("me", SLOW) as llm:
        assert llm.name == "slow"
    assert models.change is None


@pytest.mark.parametrize(
    ("name", "why"),
    [("broken", "No server answers there; start it."), ("bug", "bug could not be loaded (oh); the log")],
)
def test_one_that_cannot_be_loaded_changes_nothing_and_is_told(models: Models, name: str, why: str) -> None:
    switched(models, f"{HERE} {name}")
    assert models.change
    assert models.change.error.startswith(why)
    assert models.change.error.endswith("first goes on answering.")
    with models.lent("me") as llm:
        assert llm.name == "first"
    with pytest.raises(ModelError, match="first goes on answering"), models.lent("me", f"{HERE} {name}"):
        pass
    switched(models, QUICK)
    assert models.change is None


def test_a_turn_that_must_have_a_model_has_no_other(models: Models) -> None:
    switched(models, QUICK)
    switched(models, f"{HERE} first")
    with pytest.raises(ModelError, match="choose it again"), models.lent("me", QUICK):
        pass


@pytest.fixture
def other(models: Models, tmp_path: Path) -> Models:
    """Another process's, on the same data folder; "first" runs there, too."""
    there = Models(settings_in(tmp_path, backend="server", server=HERE, model="first"), Loads())
    there.open(models.known.at_start(), silent)
    return there


def test_what_another_process_switches_to_is_followed_once(models: Models, other: Models, tmp_path: Path) -> None:
    other.follow()
    assert other.change is None
    switched(models, QUICK)
    kept = (tmp_path / FILE).stat().st_mtime_ns
    for _ in range(3):
        other.follow()
        assert other.loaded(5, QUICK)
    until(lambda: other.running and other.running.known.id == QUICK)
    assert (tmp_path / FILE).stat().st_mtime_ns == kept
    before = other.running
    models.follow()
    other.follow()
    assert (other.running, models.change, other.change) == (before, None, None)


def test_what_cannot_be_loaded_here_is_tried_once_and_what_runs_goes_on(models: Models, other: Models) -> None:
    models.known.choose(BROKEN)
    other.follow()
    until(lambda: other.change and other.change.error)
    assert other.running
    assert other.running.known.title == "first"
    told = other.change
    other.follow()
    assert other.change is told
    models.known.choose("gone")
    other.follow()
    assert other.change is told


def test_a_switch_while_another_is_followed_comes_after_it_and_stays(models: Models, tmp_path: Path) -> None:
    loads = Loads()
    other = Models(settings_in(tmp_path, backend="server", server=HERE, model="first"), loads)
    other.open(models.known.at_start(), silent)
    models.known.choose(SLOW)
    other.follow()
    switched(models, QUICK)
    other.follow()
    assert other.change
    assert other.change.known.id == SLOW
    loads.go.set()
    assert other.loaded(5, SLOW)
    other.follow()
    until(lambda: other.running and other.running.known.id == QUICK)
    assert json.loads((tmp_path / FILE).read_text())["chosen"] == QUICK


def test_nothing_is_lent_before_anything_is_loaded(tmp_path: Path, loads: Loads) -> None:
    with pytest.raises(ModelError, match="still loading"), Models(settings_in(tmp_path), loads).lent("me"):
        pass


def test_what_is_loaded_after_the_end_is_unloaded(models: Models, loads: Loads) -> None:
    models.switch(SLOW)
    models.close()
    assert loads.made[0].closed
    loads.go.set()
    until(lambda: len(loads.made) == 2 and loads.made[1].closed)


def test_users_of_a_vllm_have_salts_of_their_own_which_are_not_their_names(tmp_path: Path) -> None:
    with StandIn(vllm(lambda _: "Oat drink.", {"y": 0.6}), KEY) as there:
        models = Models(settings_in(tmp_path, backend="server", server=there.address, api_key=KEY))
        models.open(models.known.at_start(), silent)
        salts = []
        for user in ("ann", "ann", "bob"):
            with models.lent(user) as llm:
                assert [*llm.stream((Message("user", "Hi"),), Options(), Event())][-1].text == "Oat drink."
            salts.append(there.asked[-1].body["cache_salt"])
        models.close()
    assert salts[0] == salts[1] != salts[2]
    assert "ann" not in salts[0]


def test_a_server_that_is_down_at_the_start_is_met_with_the_next_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "RETRY_SECONDS", 0.0)
    with StandIn({}) as there:
        models = Models(settings_in(tmp_path, backend="server", server=there.address))
        models.open(models.known.at_start(), silent)
        assert "The next message tries again." in models.notice
        there.answers.update(lm_studio(lambda _: "Oat drink."))
        with models.lent("me") as llm:
            assert [*llm.stream((Message("user", "Hi"),), Options(), Event())][-1].text == "Oat drink."
        models.close()


@dataclass
class OfModels(Given):
    """Parts with the model that is lent."""

    models: Models = field(kw_only=True)

    def loaded(self, seconds: float, model: str = "") -> bool:
        return self.models.loaded(seconds, model)

    def waiting(self) -> Wait:
        return self.models.waiting()

    @contextmanager
    def lent(self, user: str, choices: Choices, model: str = "") -> Iterator[Parts]:
        with self.models.lent(user, model) as llm:
            yield replace(self.made, llm=llm)


class TestAServerThatSaysNothing:
    """It takes connections, and answers none until `says` is set."""

    @pytest.fixture
    def says(self) -> Event:
        return Event()

    @pytest.fixture
    def models(self, tmp_path: Path, says: Event, monkeypatch: pytest.MonkeyPatch) -> Iterator[Models]:
        def listed(request: Request) -> Reply:
            return usual["/v1/models"](request) if says.wait(30) else Reply({}, 500)

        monkeypatch.setattr(server, "RETRY_SECONDS", 0.0)
        usual = lm_studio(lambda _: "Oat drink.")
        with StandIn({}) as there:
            models = Models(settings_in(tmp_path, backend="server", server=there.address))
            models.open(models.known.at_start(), silent)  # nothing is there at the start
            there.answers.update({**usual, "/v1/models": listed})
            yield models
            says.set()
            models.close()

    @pytest.fixture
    def chat(self, tmp_path: Path, models: Models, parts: Parts) -> Chat:
        engine = connect(f"sqlite:///{tmp_path / 'chat.sqlite3'}")
        return Chat(Conversations(engine), Ptkb(engine), OfModels(parts, models=models))

    def test_a_turn_that_waits_for_it_can_be_stopped(self, chat: Chat, says: Event) -> None:
        stop = Event()
        stream = chat.once("me", "Hello!", (), Choices(), stop)
        first = next(stream)
        assert (first.step, first.wait and first.wait.kind) == ("load", "loading")
        stop.set()
        [turn] = stream
        assert (turn.status, says.is_set()) == ("stopped", False)

    def test_the_turn_goes_on_once_it_answers(self, chat: Chat, says: Event) -> None:
        stream = chat.once("me", "Hello!", (), Choices(), Event())
        assert next(stream).step == "load"
        says.set()
        *_, turn = stream
        assert (turn.status, turn.answer and turn.answer.text) == ("done", "Oat drink.")


def test_all_who_waited_for_a_server_hear_that_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, says = [], Event()

    def refuses(request: Request) -> Reply:
        asked.append(request)
        return Reply({"error": {"message": "no"}}, 401 if says.wait(30) else 500)

    with StandIn({}) as there:
        models = Models(settings_in(tmp_path, backend="server", server=there.address))
        models.open(models.known.at_start(), silent)
        there.answers["/v1/models"] = refuses
        monkeypatch.setattr(server, "RETRY_SECONDS", 0.0)
        until(lambda: not models.loaded(0))  # on a slow machine one that began before may fail only now
        monkeypatch.setattr(server, "RETRY_SECONDS", 60.0)
        says.set()
        until(lambda: models.loaded(0))
        for user in ("ann", "bob"):
            with models.lent(user) as llm, pytest.raises(ModelError, match="wants a key"):
                next(llm.stream((Message("user", "Hi"),), Options(), Event()))
        models.close()
    assert len(asked) == 1


class Paced(ScriptedLLM):
    """Waits before each word of its replies; counts them, and those that were stopped."""

    asked_for = stopped = 0

    def stream(self, messages: object, options: Options, stop: Event) -> Iterator[Completion]:
        self.asked_for += 1
        yield Completion("", 9, read=4)
        for n in range(1, 12):
            if stop.wait(0.01):
                self.stopped += 1
                return
            yield Completion("word " * n, 9, n, finish="stop" if n == 11 else "")


# --- what is fetched first, and measured afterwards ---------------------------------------------------------------

CHAT = Entry(
    name="chat", kind="gguf", template="in it", listed_size=300_000, hub=Hub(repo="someone/chat", file="chat.gguf")
)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    """A hub that has "chat", the only model of the catalogue."""
    listed = Catalogue([CHAT])
    monkeypatch.setattr(Catalogue, "load", staticmethod(lambda: listed))
    with stand_in_hub({"someone/chat/chat.gguf": b"GGUF" + bytes(300_000)}, monkeypatch) as running:
        yield running


def online(folder: Path) -> Settings:
    return Settings(data_dir=folder, llm=LLMSettings(backend="llama.cpp"))


def test_a_model_that_is_not_here_is_fetched_and_then_used(tmp_path: Path, loads: Loads, hub: StandInHub) -> None:
    models = Models(online(tmp_path), loads)
    hub.pause = 0.02
    models.switch("chat")
    until(lambda: models.fetching.state.done > 0)
    assert models.running is None
    until(lambda: models.running)
    assert models.running
    assert (models.running.known.id, models.running.known.llm.model) == ("chat", "chat")
    assert Catalogue.load().is_here("chat", online(tmp_path))
    models.close()


@pytest.mark.parametrize("end", [lambda models: models.fetching.stop(), Models.close])
def test_a_fetch_that_is_stopped_or_outlived_switches_nothing(
    tmp_path: Path, loads: Loads, hub: StandInHub, end: Callable[[Models], None]
) -> None:
    models = Models(online(tmp_path), loads)
    hub.pause = 0.1
    models.switch("chat")
    until(lambda: models.fetching.state.done > 0)
    end(models)
    assert models.fetching.wait(5)
    assert not models.fetching.state.under_way
    assert (models.running, models.change, loads.made) == (None, None, [])
    models.close()


def test_a_fetch_that_fails_is_told_and_what_runs_goes_on(tmp_path: Path, loads: Loads, hub: StandInHub) -> None:
    models = Models(online(tmp_path), loads)
    hub.status = 404
    models.switch("chat")
    until(lambda: models.change and models.change.error)
    assert models.change
    assert "could not be had" in models.change.error
    assert not models.is_changing
    assert loads.made == []
    models.close()


def test_whoever_asks_for_a_model_again_has_the_hub_asked_again(
    tmp_path: Path, loads: Loads, hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models(online(tmp_path), loads)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    models.switch("chat")
    until(lambda: models.change and models.change.error)
    assert models.change
    assert "unreachable" in models.change.error
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.address)
    models.switch("chat")
    until(lambda: models.running)
    models.close()


class Small(Paced):
    """A quick engine of the catalogue's small model."""

    def __init__(self) -> None:
        super().__init__(name="small")

    def close(self) -> None:
        """Nothing is loaded."""


@pytest.mark.parametrize(
    ("here", "hub", "trouble", "offers"),
    [(False, True, "", True), (True, True, "", False), (False, False, "", False), (False, True, "offline", False)],
)
def test_the_best_is_offered_once_the_speed_is_known_where_the_hub_can_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: bool, hub: bool, trouble: str, offers: bool
) -> None:
    entries = [CHAT.model_copy(update={"name": name, "parameters": n}) for name, n in (("small", 1.0), ("chat", 2.0))]
    listed = Catalogue(entries)
    monkeypatch.setattr(Catalogue, "load", staticmethod(lambda: listed))
    monkeypatch.setattr(Catalogue, "is_here", lambda *_: here)
    monkeypatch.setattr("assistant.llm.models.hub_trouble", lambda: trouble)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=64 << 30))
    settings = online(tmp_path).model_copy(update={"hub": hub})
    models = Models(settings)
    models.take_up(models.known.find("small"), Small())
    assert models.offer is None
    speed = speed_test.MeasuredSpeed(
        "small", "llama.cpp", speed_test.processor_of("llama.cpp", settings.llm), 300_000, 200.0, 20.0
    )
    (tmp_path / "speeds.json").write_text(json.dumps([asdict(speed)]))
    before = models.mark
    models.measure()
    if not offers:
        time.sleep(0.2)
        assert models.offer is None
        assert models.mark == before
        return
    until(lambda: models.offer)
    assert models.offer.entry.name == "chat"
    assert models.mark != before
    models.take_up(models.known.find("chat"), Small())
    assert models.offer is None


def test_why_another_engine_runs_a_model_is_told_until_the_next_one(tmp_path: Path) -> None:
    def load(settings: Settings, progress: Progress, tell: Callable[[str], None]) -> Engine:
        if settings.llm.model == "odd":
            tell("OpenVINO can't load odd. llama.cpp runs it instead.")
        return Loaded(settings.llm.model)

    models = Models(settings_in(tmp_path), load)
    odd, even = (models.known.add(AddedServer(address=HERE, model=name)).id for name in ("odd", "even"))
    switched(models, odd)
    assert models.notice == "OpenVINO can't load odd. llama.cpp runs it instead."
    switched(models, even)
    assert models.notice == ""


def test_an_engine_is_measured_once_and_only_while_nobody_is_answered(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, backend="llama.cpp", model="paced")
    turns = [True]
    gauge = IdleSpeedTest(settings, lambda _: not turns, quiet=0.01)
    engine = Paced(name="paced")
    gauge.start(engine, settings, nothing)
    time.sleep(0.3)
    assert not is_measured(engine, settings)
    turns.clear()
    until(lambda: is_measured(engine, settings))
    [kept] = speeds(settings)
    assert kept.written > 40
    asked = engine.asked_for
    gauge.start(engine, settings, nothing)
    time.sleep(0.2)
    assert engine.asked_for == asked


def test_a_turn_that_begins_stops_a_measurement_which_is_begun_anew(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, backend="llama.cpp", model="paced")
    gauge, engine = IdleSpeedTest(settings, lambda _: True, quiet=0.01), Paced(name="paced")
    gauge.start(engine, settings, nothing)
    until(lambda: engine.asked_for)
    gauge.stop()
    until(lambda: engine.stopped)
    until(lambda: is_measured(engine, settings))


def test_an_engine_that_was_replaced_is_not_measured(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, backend="llama.cpp", model="paced")
    engine = Paced(name="paced")
    IdleSpeedTest(settings, lambda _: None, quiet=0.01).start(engine, settings, nothing)
    time.sleep(0.2)
    assert engine.asked_for == 0


# --- what is known -------------------------------------------------------------------------------------------------


def test_servers_are_kept_for_nobody_else_to_read_and_a_key_is_never_shown(tmp_path: Path) -> None:
    known = KnownModels(settings_in(tmp_path))
    added = known.add(AddedServer(address=f"{HERE}/v1/", model="big", key=SecretStr("sk-secret"), context=8192))
    file = tmp_path / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.glob(f"{FILE}.*")] == [f"{FILE}.lock"]
    [again] = KnownModels(settings_in(tmp_path)).added()
    assert again == added
    assert (again.id, again.title, again.llm.context) == (f"{HERE} big", "big", 8192)
    assert again.llm.api_key.get_secret_value() == "sk-secret"
    assert "sk-secret" not in repr(again)
    assert "sk-secret" in file.read_text()


def test_a_server_that_is_added_again_is_replaced_and_one_that_is_removed_is_gone(tmp_path: Path) -> None:
    known = KnownModels(settings_in(tmp_path))
    known.add(AddedServer(address=HERE, model="big"))
    known.add(AddedServer(address=HERE, model="small"))
    known.add(AddedServer(address=HERE, model="big", key=SecretStr("new")))
    assert [one.llm.api_key.get_secret_value() for one in known.added()] == ["", "new"]
    known.remove(f"{HERE} big")
    assert [one.title for one in known.added()] == ["small"]
    with pytest.raises(ModelError, match="not among those that were added"):
        known.remove(f"{HERE} big")
    with pytest.raises(ModelError, match="is not known any more"):
        known.find(f"{HERE} big")


def test_a_server_that_was_added_without_a_model_is_called_as_its_only_one(tmp_path: Path) -> None:
    known = KnownModels(settings_in(tmp_path))
    with StandIn(lm_studio(lambda _: "Oat drink.")) as there:
        assert "small was added." in command(tmp_path, "add", there.address).output
    [added] = known.added()  # the server is away: it was asked once
    assert (added.id, added.title) == (f"{there.address} auto", "small")
    with StandIn(plain(lambda _: "Oat drink.", models=("small", "large"))) as two:
        for place in (two.address, there.address):
            assert f"{place.partition('://')[2]} was added." in command(tmp_path, "add", place).output


@pytest.mark.parametrize("address", ["http://[::1", "http://192.168.0.300:11434"])
def test_a_stored_server_whose_address_is_none_keeps_no_other_from_answering(tmp_path: Path, address: str) -> None:
    assert "is no address of a server" in str(command(tmp_path, "test", address).exception)
    with StandIn(plain(lambda _: "Oat drink.")) as there:
        servers = [{"address": address, "model": "auto"}, {"address": there.address, "model": "small"}]
        (tmp_path / FILE).write_text(json.dumps({"servers": servers}))
        known = KnownModels(settings_in(tmp_path))
        with ThreadPoolExecutor() as pool:
            reasons = pool.submit(lambda: asyncio.run(absences([one.llm for one in known.added()]))).result()
    assert "is no address of a server" in reasons[0]
    assert reasons[1] == ""
    known.remove(f"{address} auto")
    assert [one.title for one in known.added()] == ["small"]


@pytest.mark.parametrize("text", ["{", '{"servers": [{"address": 1}]}', '{"more": 1}'])
def test_a_broken_file_is_told_and_what_is_in_it_is_not_lost(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    known = KnownModels(settings_in(tmp_path))
    for use in (known.added, lambda: known.add(AddedServer(address=HERE)), lambda: known.choose("x")):
        with pytest.raises(ModelError, match="can't be read; mend it, or delete it"):
            use()
    assert (tmp_path / FILE).read_text() == text
    assert known.at_start().id == "auto"
    assert known.here() == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="can't be written"):
        KnownModels(settings_in(tmp_path / "file" / "data")).add(AddedServer(address=HERE))


def test_what_was_switched_to_answers_after_the_next_start_unless_the_settings_name_another(
    models: Models, tmp_path: Path
) -> None:
    switched(models, QUICK)
    assert json.loads((tmp_path / FILE).read_text())["chosen"] == QUICK
    assert KnownModels(settings_in(tmp_path, context=2048)).at_start().id == QUICK
    assert KnownModels(settings_in(tmp_path, model="fast")).at_start().id == "qwen2.5-coder-0.5b-instruct"
    models.known.remove(QUICK)
    assert KnownModels(settings_in(tmp_path)).at_start().id == "auto"


def test_other_models_keep_the_settings_but_for_what_names_one(tmp_path: Path) -> None:
    known = KnownModels(settings_in(tmp_path, backend="llama.cpp", context=2048, threads=3, slots=2))
    served = known.add(AddedServer(address=HERE)).llm
    assert (served.backend, served.threads, served.slots) == ("server", 3, 2)
    assert "context" not in served.model_fields_set
    [small] = [one.llm for entry, one in known.catalogue() if entry.name == "smollm2-135m"]
    assert (small.backend, small.context, small.threads) == ("llama.cpp", 2048, 3)
    elsewhere = KnownModels(settings_in(tmp_path, backend="server", server=HERE, api_key="secret", context=9000))
    [small] = [one.llm for entry, one in elsewhere.catalogue() if entry.name == "smollm2-135m"]
    assert (small.backend, small.context, small.server, small.api_key.get_secret_value()) == ("auto", 4096, "", "")


def test_what_the_settings_name_can_be_switched_back_to(tmp_path: Path) -> None:
    known = KnownModels(settings_in(tmp_path, model=str(tmp_path / "mine.gguf")))
    own = known.find(str(tmp_path / "mine.gguf"))
    assert own.title == "mine.gguf"
    assert own in known.here()


# --- how fast ------------------------------------------------------------------------------------------------------


def test_the_pace_of_replies_is_told_without_the_readers_own_time() -> None:
    speed = ReplySpeed()
    assert speed.per_second == 0
    for _ in TimedLLM(Paced(), speed).stream((), Options(), Event()):
        time.sleep(0.02)
    assert speed.replies == 1
    assert 40 < speed.per_second <= 100


def test_the_last_twenty_replies_count_and_short_ones_do_not() -> None:
    speed = ReplySpeed()
    speed.add(3, 1.0)
    assert speed.replies == 0
    speed.add(1001, 1.0)
    for _ in range(20):
        speed.add(101, 2.0)
    assert (speed.replies, speed.per_second) == (20, pytest.approx(50))


def test_plain_servers_can_be_switched_to(tmp_path: Path) -> None:
    with StandIn(plain(lambda _: "Oat drink.", models=("small", "large"))) as there:
        models = Models(settings_in(tmp_path))
        known = models.known.add(AddedServer(address=there.address, model="large"))
        switched(models, known.id)
        assert models.running
        assert models.running.name == "large"
        models.close()


# --- from the command line -----------------------------------------------------------------------------------------


def command(folder: Path, *words: str, said: str = "") -> Result:
    """The command in a thread of its own, where no loop of another test's browser runs."""
    line = ["models", "servers", *words, "--data-dir", str(folder)]
    with ThreadPoolExecutor() as pool:
        return pool.submit(CliRunner().invoke, app, line, input=said).result()


def test_servers_are_tested_added_listed_and_removed_from_the_command_line(tmp_path: Path) -> None:
    with StandIn(plain(lambda _: "Oat drink.", models=("small", "large")), KEY) as there:
        refused = command(tmp_path, "test", there.address)
        assert "wants a key" in str(refused.exception)
        which = command(tmp_path, "test", there.address, "--key", said=f"{KEY}\n")
        assert "It has 2 models; choose one of them. (small, large)" in str(which.exception)
        tested = command(tmp_path, "test", there.address, "--model", "large", "--key", said=f"{KEY}\n")
        assert "OpenAI-compatible answers with large." in tested.output
        assert "Tells how likely a text is: no." in tested.output
        assert "A stop ends its work: not known." in tested.output
        assert KnownModels(settings_in(tmp_path)).added() == []
        command(tmp_path, "add", there.address, "--model", "large", "--key", said=f"{KEY}\n")
    listed = command(tmp_path, "list").output
    assert "large" in listed
    assert "kept" in listed
    assert KEY not in listed
    command(tmp_path, "remove", f"{there.address} large")
    assert KnownModels(settings_in(tmp_path)).added() == []
    assert "greater than or equal to 1024" in command(tmp_path, "add", HERE, "--context", "1000").output
    assert "500 characters at most" in str(command(tmp_path, "add", HERE, "--model", "x" * 501).exception)


def test_that_a_model_thinks_before_it_replies_is_told_from_the_command_line(tmp_path: Path) -> None:
    with StandIn(plain(lambda _: "One comes first. </think> One, two, three.")) as there:
        told = command(tmp_path, "test", there.address).output
    assert "Thinks before it replies: yes, which is left out." in told
