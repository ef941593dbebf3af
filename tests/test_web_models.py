"""Who may change which model answers: whom the page takes for one who may, and what others' events come to."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from socket import create_server
from time import monotonic

import httpx
import pytest

from assistant.errors import SettingsError
from assistant.llm.known_models import AddedServer
from assistant.settings import WebSettings
from assistant.store.database import connect
from assistant.store.users import Logins
from assistant.web.models import ModelMenu
from assistant.web.server import choosing, serve
from assistant.web.switching import Switcher
from assistant.web.tab import Tab
from assistant.web.view import Pieces, View
from tests.browser.fake import Loaded, Script, house
from tests.servers import StandIn, plain


@pytest.mark.parametrize(
    ("logins", "admins", "may"),
    [
        ((), (), {"me"}),
        ((), ("ann",), {"me", "ann"}),
        (("ann", "bob"), (), set()),
        (("ann", "bob"), ("ann",), {"ann"}),
        (("ann", "bob"), ("ann", "bob"), {"ann", "bob"}),
        (("ann",), ("me",), {"me"}),
    ],
)
def test_who_may_choose_the_model(logins: tuple[str, ...], admins: tuple[str, ...], may: set[str]) -> None:
    kept = Logins(connect("sqlite://"))
    for name in logins:
        kept.add(name, "correct horse")
    chooses = choosing(WebSettings(admins=admins), kept)
    assert {user for user in ("me", "ann", "bob", "") if chooses(user)} == may


@pytest.mark.parametrize("event", ["use", "take", "test", "connect", "remove", "halt"])
def test_an_event_of_somebody_who_may_not_choose_is_refused_and_does_nothing(tmp_path: Path, event: str) -> None:
    built, _ = house(tmp_path, Script(0.0), Loaded())
    models = built.models
    before = models.running
    with StandIn(plain(lambda _: "Oat drink.")) as there:
        known = models.known.add(AddedServer(address=there.address, model="small"))
        view = View(Pieces(*(one.name for one in fields(Pieces))), built.conversations, built.ptkb, built.runs)
        menu = ModelMenu(view, Switcher(models, lambda _: False), built.settings)
        tab = Tab("bob", data={"address": there.address, "model": known.id})

        async def forged() -> None:
            async for _ in getattr(menu, event)(tab):
                pass

        # in a thread of its own, as a browser test may have left this one with a loop
        with ThreadPoolExecutor(1) as pool, pytest.raises(SettingsError, match="ask one of them"):
            pool.submit(lambda: asyncio.run(forged())).result()
        assert there.asked == []
    assert [one.id for one in models.known.added()] == [known.id]
    assert (models.running, models.change) == (before, None)


def test_a_page_follows_what_another_one_on_its_folder_has_switched_to(tmp_path: Path) -> None:
    (one, _), (built, logins) = (house(tmp_path, Script(0.0), Loaded()) for _ in range(2))
    page = serve(built, logins)
    with StandIn(plain(lambda _: "Oat drink.")) as there, httpx.Client(base_url=page.url) as client:
        before = client.get("/model-mark").text
        known = one.models.known.add(AddedServer(address=there.address, model="small"))
        one.models.switch(known.id)
        assert one.models.loaded(20, known.id)
        end = monotonic() + 20
        while client.get("/model-mark").text == before or built.models.is_changing:
            assert monotonic() < end
        assert built.models.running
        assert built.models.running.known == known
    page.close()


def test_a_server_that_is_removed_while_the_menu_is_drawn_is_not_shown_again(tmp_path: Path) -> None:
    built, _ = house(tmp_path, Script(0.0), Loaded())
    known = built.models.known
    view = View(Pieces(*(one.name for one in fields(Pieces))), built.conversations, built.ptkb, built.runs)
    menu = ModelMenu(view, Switcher(built.models, lambda _: True), built.settings)

    async def drawn() -> str:
        return str(await anext(menu.see(Tab("me"))))

    with create_server(("127.0.0.1", 0)) as slow, ThreadPoolExecutor(1) as pool:
        address = f"http://127.0.0.1:{slow.getsockname()[1]}"
        removed = known.add(AddedServer(address=address, model="removed"))
        known.add(AddedServer(address=address, model="kept"))
        drawing = pool.submit(lambda: asyncio.run(drawn()))
        asked, _ = slow.accept()
        known.remove(removed.id)
        asked.close()
        html = drawing.result()
    assert "Remove removed" not in html
    assert "Remove kept" in html
