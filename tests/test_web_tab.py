"""Banners: what an event leaves of the one that is there, and what it says where it failed."""

from __future__ import annotations

from typing import Any

import pytest

from assistant.chat import INTERNAL_ERROR
from assistant.errors import StoreError
from assistant.web.tab import Updates, guarded, with_error_banner

NOTICE: Any = "the banner"
GUARDS = pytest.mark.parametrize("guard", [guarded, with_error_banner])


def test_a_click_takes_the_banner_away() -> None:
    assert guarded(lambda: {"facts": "shown"}, NOTICE) == {"facts": "shown", NOTICE: ""}


def test_what_fills_the_page_as_it_opens_leaves_the_banner_of_another() -> None:
    assert with_error_banner(lambda: {"documents": "shown"}, NOTICE) == {"documents": "shown"}


@GUARDS
def test_a_banner_of_its_own_is_shown(guard: Any) -> None:
    assert guard(lambda: {NOTICE: "Remembered."}, NOTICE) == {NOTICE: "Remembered."}


@GUARDS
def test_an_error_is_told_and_nothing_else_changes(guard: Any) -> None:
    def missing() -> Updates:
        raise StoreError("The conversation was not found.")

    [(piece, banner)] = guard(missing, NOTICE).items()
    assert piece == NOTICE
    assert "The conversation was not found." in banner


@GUARDS
def test_a_bug_is_told_in_words_and_logged(guard: Any, caplog: pytest.LogCaptureFixture) -> None:
    [banner] = guard(lambda: {"facts": 1 // 0}, NOTICE).values()
    assert INTERNAL_ERROR[:20] in banner
    assert "ZeroDivisionError" in caplog.text
