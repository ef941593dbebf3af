"""The documents' tab on real files and their real index: how they come in, and what is done with them then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from playwright.sync_api import BrowserContext, Page, expect

import assistant.chat
from assistant import turn as flow
from assistant.library.addresses import fetch_file
from assistant.protocols import Parts, Progress
from assistant.types import Turn
from assistant.web import library as panel
from assistant.web.folder import FollowedFolder
from assistant.web.library import OwnDocuments
from assistant.web.server import serve
from tests.browser import fake
from tests.browser.conftest import Site, opened, tab
from tests.browser.fake import Loaded, Script, ScriptedChat, house
from tests.scripted import WORDS, FixedRetriever, ScriptedLLM, WordJudge
from tests.test_fetched import here
from tests.test_fetched import site as web  # noqa: F401 - a fixture

pytestmark = pytest.mark.lucene

BEFORE = "Rent is 900 euros a month for both of us. Pets are allowed.\n\nThe key is in the hall."
AFTER = "The key is in the hall.\n\nRent is 950 euros a month for both of us. No smoking inside."
PRICES = "Oats cost 12 crowns. Tea costs 40."


class Held(OwnDocuments):
    """Half of a document is read, then nothing more until `go` is set."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)
        self.go = Event()
        self.go.set()

    def add(
        self,
        user: str,
        files: Sequence[Path],
        progress: Progress,
        stop: Event,
        names: Mapping[Path, str] | None = None,
    ) -> Sequence[str]:
        """As all documents are added."""
        progress(1, 2)
        self.go.wait()
        return super().add(user, files, progress, stop, names)


class WorkingChat(ScriptedChat):
    """Work on whole documents is done as it really is, by a model that says `replies`."""

    replies: Sequence[str] = ()

    def _answered(self, user: str, turn: Turn, stop: Event) -> Iterator[Turn]:
        if not turn.work:
            yield from super()._answered(user, turn, stop)
            return
        llm = ScriptedLLM(list(self.replies))
        parts = Parts(self.loading.settings, llm, WORDS, FixedRetriever([]), support=lambda _: WordJudge())
        yield from flow.run(turn, parts, stop)


@dataclass
class Desk(Site):
    """A page with documents as they really are."""

    @property
    def documents(self) -> Held:
        assert isinstance(self.house.documents, Held)
        return self.house.documents

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.documents.list("me")]

    def clear(self) -> None:
        """Forget all documents and conversations."""
        self.documents.go.set()
        for one in self.documents.list("me"):
            self.documents.remove("me", one.id)
        for one in self.house.conversations.list("me"):
            self.house.conversations.delete("me", one.id)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    script, loading = Script(), Loaded()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake, "ScriptedChat", WorkingChat)
        built, logins = house(tmp_path_factory.mktemp("desk"), script, loading, upload_mb=1)
    documents = Held(built.settings)
    followed = FollowedFolder(built.settings, lambda _user: True, built.chat.arrivals)
    desk = Desk(serve(replace(built, documents=documents, followed=followed), logins), script, loading)
    yield desk
    desk.server.close()


@pytest.fixture
def desk(kept: Desk) -> Desk:
    kept.clear()
    return kept


@pytest.fixture
def page(context: BrowserContext, desk: Desk) -> Page:
    page = opened(context, desk)
    tab(page, "Documents")
    return page


def listed(page: Page):
    return page.locator("#documents .document .text > span")


def upload(page: Page, folder: Path, **texts: str) -> None:
    """Adds these texts as files."""
    files = [folder / f"{name}.txt" for name in texts]
    for file, text in zip(files, texts.values(), strict=True):
        file.write_text(text, encoding="utf-8")
    page.locator("#files input[type=file]").set_input_files(files)
    for file in files:
        expect(listed(page).filter(has_text=file.name)).to_have_count(1)


def last(page: Page):
    return page.locator("#transcript article").last


def worked(page: Page, task: str, first: str, second: str = "", columns: str = "") -> None:
    """Has work done on whole documents, as the form offers it."""
    page.get_by_label("What to do").select_option(task)
    page.get_by_label("Document", exact=True).first.select_option(label=first)
    if second:
        page.get_by_label("Second document").select_option(label=second)
    page.get_by_label("Columns of a table").fill(columns)
    before = page.locator("#transcript article").count()
    page.get_by_role("button", name="See what it takes").click()
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.locator("#transcript article")).to_have_count(before + 1)
    expect(page.locator("#planned")).to_have_text("")


def test_files_that_are_too_large_are_refused_with_the_servers_sentence(page: Page, desk: Desk, tmp_path: Path) -> None:
    for name, megabytes in (("large.txt", 2), ("larger.txt", 12)):
        (tmp_path / name).write_bytes(b"Oats. " * (megabytes * 2**20 // 6))
    (tmp_path / "boat.txt").write_text("The boat is red.", encoding="utf-8")
    page.locator("#files input[type=file]").set_input_files([tmp_path / "large.txt", tmp_path / "boat.txt"])
    expect(listed(page)).to_have_text(["boat.txt"])
    expect(page.locator("#problems")).to_contain_text("large.txt: it has 2.0 MB, and a document has 1 at most")
    page.locator("#files input[type=file]").set_input_files(tmp_path / "larger.txt")
    notice = page.locator("#notice").get_by_role("alert")
    expect(notice).to_contain_text("These files are too large: a document has at most 1 MB, and 10 times that may come")
    notice.get_by_label("Close").click()
    expect(notice).to_have_count(0)
    assert desk.names == ["boat.txt"]


def test_a_document_that_is_being_read_shows_how_far_that_is_and_is_not_in_yet(
    page: Page, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask
) -> None:
    monkeypatch.setattr(assistant.chat, "PATIENCE", 2.0)
    (tmp_path / "boat.txt").write_text("The boat is red.", encoding="utf-8")
    desk.documents.go.clear()
    page.locator("#files input[type=file]").set_input_files(tmp_path / "boat.txt")
    arriving = page.locator("#documents .arriving")
    expect(arriving).to_contain_text("Being read: boat.txt. Not searched yet.")
    expect(arriving).to_contain_text("50 %")
    expect(arriving.get_by_role("progressbar")).to_have_attribute("value", "0.5")
    expect(arriving.get_by_role("button", name="Stop")).to_be_visible()
    # gradio's own "processing | 0.5s" would stand across the field
    assert set(page.evaluate("window.gradio_config.dependencies.map((one) => one.show_progress)")) == {"hidden"}
    ask(page, "What is a good diet?", wait=False)
    expect(page.locator("#answering .wait")).to_have_text("your documents, 50 %")
    expect(last(page).locator(".reply")).to_contain_text("Combine legumes")
    expect(last(page).locator(".event")).to_have_text(
        "Documents of yours are still being added and were not searched; ask again once they are listed."
    )
    desk.documents.go.set()
    expect(listed(page)).to_have_text(["boat.txt"])
    expect(arriving).to_have_count(0)
    ask(page, "What is a good diet?")
    expect(last(page).locator(".event")).to_have_count(0)


def test_a_web_page_is_fetched_a_text_pasted_and_a_second_copy_told(
    page: Page,
    desk: Desk,
    web: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(panel, "fetch_file", partial(fetch_file, may_reach=here))
    page.get_by_text("Add a web page").click()
    page.get_by_label("Web address").fill(f"{web}/moved")
    page.get_by_role("button", name="Add page").click()
    expect(listed(page)).to_have_text([f"{web}/page"])
    expect(page.locator("#notice")).to_contain_text("Documents: 1 added.")
    for title in ("On keys", "On keys once more"):
        page.get_by_text("Paste a text").click()
        page.get_by_label("Title", exact=True).fill(title)
        page.get_by_label("Text", exact=True).fill("The key hangs behind the door.")
        page.get_by_role("button", name="Add text").click()
        expect(listed(page).filter(has_text="On keys")).to_have_count(1)
    expect(page.locator("#problems")).to_contain_text("On keys once more: it is already here as “On keys”")
    assert desk.names == [f"{web}/page", "On keys"]
    page.get_by_label("Words, without the model").fill("machine cleaned")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#found .card").first).to_contain_text("how the machine is cleaned with water")
    expect(page.locator("#found")).not_to_contain_text("Buy now")


def test_own_documents_are_searched_and_the_words_are_marked(page: Page, tmp_path: Path) -> None:
    upload(page, tmp_path, oats="Oats are cooked for ten minutes.", boat="The boat is red.")
    query, found = page.get_by_label("Words, without the model"), page.locator("#found")
    query.fill("oats minute")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(found.locator(".card")).to_have_count(1)
    expect(found.locator("mark")).to_have_text(["Oats", "minutes"])
    expect(query).to_have_value("oats minute")
    upload(page, tmp_path, tea="Tea is a drink.")  # and what was found stays
    expect(found.locator("mark")).to_have_text(["Oats", "minutes"])
    expect(query).to_have_value("oats minute")
    query.fill("zebra")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(found).to_have_text("No passage has these words.")


def test_what_a_document_was_used_for_is_told(page: Page, desk: Desk, tmp_path: Path) -> None:
    upload(page, tmp_path, oats="Oats are cooked for ten minutes.", boat="The boat is red.")
    desk.house.chat.replies = ["Oats are cooked for ten minutes."]
    worked(page, "summary", "oats.txt")
    used, which = page.locator("#used"), page.locator("#uses-document")
    for document, told in (("oats.txt", "Summarise oats.txt"), ("boat.txt", "No conversation cites it.")):
        which.select_option(label=document)
        page.get_by_role("button", name="Show", exact=True).click()
        expect(used).to_contain_text(told)


def test_two_documents_are_compared_what_changed_is_listed_and_a_table_is_made(
    page: Page, desk: Desk, tmp_path: Path
) -> None:
    upload(page, tmp_path, after=AFTER, before=BEFORE)
    upload(page, tmp_path, prices=PRICES)  # the menus have what comes later, too
    worked(page, "changes", "before.txt", "after.txt")
    reply = last(page).locator(".reply")
    expect(reply).to_contain_text("Before: “Rent is 900 euros a month for both of us.”")
    expect(reply).to_contain_text("Now: “Rent is 950 euros a month for both of us.”")
    expect(reply.locator("li").filter(has_text="No smoking inside.")).to_have_count(1)
    expect(reply.locator("li").filter(has_text="Pets are allowed.")).to_have_count(1)
    desk.house.chat.replies = ["The key is in the hall.", "The key is in the hall. No smoking inside."]
    worked(page, "compare", "before.txt", "after.txt")
    expect(reply).to_contain_text("In both")
    expect(reply).to_contain_text("Only in after.txt")
    expect(reply.locator("li").last).to_contain_text("No smoking inside.")
    desk.house.chat.replies = [json.dumps({"rows": [["Oats", "12"], ["Rice", "9"]]})]
    worked(page, "table", "prices.txt", columns="item, price")
    expect(reply.locator("th")).to_have_text(["item", "price"])
    expect(reply.locator("td")).to_have_text(["Oats", "12 1"])
    reply.locator(".chip").click()
    expect(page.locator("#sources .card.current mark")).to_have_text("Oats cost 12 crowns.")


def test_what_comes_changes_and_goes_in_a_followed_folder_shows_by_itself(
    page: Page, desk: Desk, tmp_path: Path
) -> None:
    (tmp_path / "cellar.txt").write_text("The wine is kept at twelve degrees.", encoding="utf-8")
    page.locator("#follow summary").click()
    page.get_by_label("Folder on this computer").fill(str(tmp_path))
    page.get_by_role("button", name="Follow", exact=True).click()
    expect(listed(page)).to_have_text([f"{tmp_path.name}/cellar.txt"])
    happened = page.locator("#follow .happenings li")
    expect(happened.first).to_contain_text(f"{tmp_path.name}/cellar.txt added")
    page.locator("#follow summary").click()
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    (tmp_path / "attic.txt").write_text("The attic holds the skis.", encoding="utf-8")
    (tmp_path / "cellar.txt").unlink()
    expect(listed(page)).to_have_text([f"{tmp_path.name}/attic.txt"])
    expect(happened.filter(has_text="photo.png")).to_have_count(1)
    expect(page.locator("#follow")).not_to_have_attribute("open", "")  # somebody folded it
    page.locator("#follow summary").click()
    page.get_by_label("Folder on this computer").fill("")
    page.get_by_role("button", name="Follow", exact=True).click()
    expect(page.locator("#follow summary")).to_have_text("Follow a folder")


def test_another_tabs_documents_show_by_themselves_and_what_was_not_added_stays_told(
    page: Page, desk: Desk, tmp_path: Path
) -> None:
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    page.locator("#files input[type=file]").set_input_files(tmp_path / "empty.txt")
    expect(page.locator("#problems")).to_contain_text("empty.txt")
    page.locator("#paste summary").click()
    page.get_by_label("Title", exact=True).fill("half a ti")
    (tmp_path / "boat.txt").write_text("The boat is red.", encoding="utf-8")
    desk.documents.add("me", [tmp_path / "boat.txt"], lambda *_: None, Event())
    expect(listed(page)).to_have_text(["boat.txt"])
    expect(page.locator("#problems")).to_contain_text("empty.txt")
    expect(page.get_by_label("Title", exact=True)).to_have_value("half a ti")
    expect(page.get_by_label("Title", exact=True)).to_be_focused()
