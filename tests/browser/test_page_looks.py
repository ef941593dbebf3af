"""Phone and desktop, light and dark: everything reachable, named and readable."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
from playwright.sync_api import Browser, Page, expect

from assistant.protocols import silent
from tests.browser.conftest import DESKTOP, PHONE, opened, tab
from tests.browser.fake import PAGES
from tests.test_readers import make_pdf

DIET = "What is a good diet? I've just become vegan."

# Every text on the page, its contrast to what lies behind it (WCAG 2.2, 1.4.3), where that is less than 4.5 : 1.
FAINT = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const over = (top, under) => top.slice(0, 3).map((c, n) => c * top[3] + under[n] * (1 - top[3]));
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const layer = rgba(getComputedStyle(e).backgroundColor);
      if (layer[3] > 0) layers.push(layer);
      if (layer[3] === 1) break;
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    const shown = element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
    const box = element.getBoundingClientRect();
    const text = walker.currentNode.textContent.trim();
    if (!text || !shown || box.width < 2 || element.closest('[disabled], svg')) continue;
    const behind = ground(element), ink = over(rgba(style.color), behind);
    const [a, b] = [light(ink), light(behind)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push([ratio.toFixed(2), text.slice(0, 40), element.className]);
  }
  return found;
}"""
NAMELESS = """() => [...document.querySelectorAll('button, a, input, textarea, select, summary, [role=tab]')]
  .filter((e) => e.checkVisibility({checkVisibilityCSS: true}) && e.type !== 'file')
  .filter((e) => !(e.ariaLabel || e.labels?.length || e.title || e.textContent.trim()))
  .filter((e) => !e.getAttribute('aria-labelledby'))
  .map((e) => e.outerHTML.slice(0, 150))"""

# Where the fields of the documents' tab begin: as far from the left as the documents.
EDGES = """() => [...document.querySelectorAll('#documents :is(.document, input, textarea)')]
  .map((e) => Math.round(e.getBoundingClientRect().left))"""

# Scrolls the panel so that the label of the field for files, which nothing can be pressed on, is where the tabs are.
BENEATH = """() => { const middle = (e) => e.getBoundingClientRect().y + e.getBoundingClientRect().height / 2;
  const [label, tab] = ['#files label', '#sources-tab-button'].map((name) => document.querySelector(name));
  document.querySelector('#panel').scrollBy(0, middle(label) - middle(tab));
  label.style.pointerEvents = 'auto'; }"""
# Whether nothing covers the middle of an element.
ON_TOP = """(element) => { const box = element.getBoundingClientRect();
  return element.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)); }"""
MOTIONS = ("no-preference", "reduce")
DRAWN = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_text_is_readable_and_every_control_has_a_name(browser: Browser, site, ask, size) -> None:
    context = browser.new_context(viewport=size, reduced_motion="reduce")
    page = opened(context, site)
    check(page)
    site.house.ptkb.add("me", "I'm vegetarian.")
    ask(page, DIET)
    ask(page, "An unknown thing")
    ask(page, "fail please")
    page.get_by_text("Answer again with…").first.click()
    page.get_by_role("button", name="Compare").first.click()
    expect(page.locator(".keep")).to_have_count(2)
    for details in page.locator("#transcript details").all():
        details.evaluate("details => { details.open = true }")
    if size is PHONE:
        page.get_by_role("button", name="Sources, facts and documents").click()
    for name in ("My facts", "Documents", "Model", "Settings", "Sources"):
        tab(page, name)
        check(page)
    context.close()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_documents_and_the_page_that_a_citation_opens_are_readable(
    browser: Browser, site, ask, size, tmp_path: Path
) -> None:
    names = ("house.pdf", "a letter with a name that is longer than most " * 2 + ".txt", "x" * 80 + ".txt")
    files = [make_pdf(tmp_path / name, *PAGES, title="The house") for name in names]
    site.house.documents.add("me", files, silent, Event())
    context = browser.new_context(viewport=size, reduced_motion="reduce")
    page = opened(context, site)
    ask(page, "Where is the key, in my PDF?")
    if size is PHONE:
        page.get_by_role("button", name="Sources, facts and documents").click()
    tab(page, "Documents")
    expect(page.locator("#documents .document")).to_have_count(len(names))
    for form in page.locator("#documents details").all():
        form.evaluate("details => { details.open = true }")
    edges = page.evaluate(EDGES)
    assert len(set(edges)) == 1, edges
    check(page)
    page.evaluate(BENEATH)
    assert page.get_by_role("tab", name="Sources").evaluate(ON_TOP)
    page.keyboard.press("Escape")
    page.locator("#transcript .chip").last.click()
    expect(page.locator(".viewer mark")).to_have_count(1)
    check(page)
    for button in page.locator(".viewer header :is(a, button)").all():
        expect(button).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    expect(page.locator("#sources mark.current")).to_have_count(1)
    check(page)
    context.close()


def check(page: Page) -> None:
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        expect(page.locator("body.dark")).to_have_count(int(theme == "dark"))
        page.evaluate(DRAWN)
        assert page.evaluate(FAINT) == []
    assert page.evaluate(NAMELESS) == []
    wide, across = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= across
    inner, outer = page.evaluate(
        "(() => { const e = document.querySelector('#talk'); return [e.scrollWidth, e.clientWidth] })()"
    )
    assert inner <= outer


def test_the_checks_find_what_is_wrong(page: Page) -> None:
    page.evaluate(
        """document.querySelector('#talk').insertAdjacentHTML('beforeend',
          '<p style="color:#999;background:#fff">faint</p><button><svg></svg></button>')"""
    )
    assert [text for _, text, _ in page.evaluate(FAINT)] == ["faint"]
    assert page.evaluate(NAMELESS) == ["<button><svg></svg></button>"]


def test_the_theme_can_be_switched_and_stays(page: Page) -> None:
    def ground() -> str:
        return page.evaluate(
            "getComputedStyle(document.querySelector('#main').parentElement.closest('.gradio-container')).backgroundColor"
        )

    light = ground()
    page.get_by_role("button", name="Light or dark").click()
    dark = ground()
    assert dark != light
    page.reload()
    expect(page.locator(".welcome")).to_be_visible()
    page.wait_for_timeout(300)
    assert ground() == dark
    for system in ("dark", "light"):
        page.emulate_media(color_scheme=system)
        page.wait_for_timeout(300)
        assert ground() == dark


def test_long_words_do_not_widen_the_page(phone: Page, ask) -> None:
    ask(phone, "x" * 500)
    wide, across = phone.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= across


def test_everything_is_reached_with_the_tab_key(page: Page, ask) -> None:
    ask(page, DIET)
    page.evaluate("document.activeElement.blur()")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent.trim().slice(0, 40)")
        )
    for name in ("New conversation", "Light or dark", "Copy the reply", "A good reply", "Answer again", "Sources"):
        assert name in seen
    assert any("Source 2" in name for name in seen)
    assert any("Remember" in name for name in seen)


def test_an_open_menu_closes_with_escape(page: Page, ask) -> None:
    ask(page, "Hello")
    page.get_by_label("More for Hello").click()
    expect(page.get_by_role("button", name="Export as Markdown")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Export as Markdown")).not_to_be_visible()


def test_a_note_is_seen_and_leaves_nothing_behind_with_motion_and_without(browser: Browser, site, ask) -> None:
    pages = [opened(browser.new_context(viewport=DESKTOP, reduced_motion=motion), site) for motion in MOTIONS]
    tops = [page.locator("#talk").bounding_box()["y"] for page in pages]
    for page in pages:
        ask(page, DIET)
    for page, fact in zip(pages, ("I'm vegan.", "I like oats."), strict=True):
        page.get_by_role("button", name=f"Remember “{fact}”?").click()
        expect(page.locator(".notice.note")).to_be_visible()
    pages[-1].wait_for_timeout(1000)
    for page in pages:
        expect(page.locator(".notice.note")).to_be_visible()
    for page in pages:
        expect(page.locator(".notice.note")).to_have_count(0)
    assert [page.locator("#talk").bounding_box()["y"] for page in pages] == tops
    for page in pages:
        page.context.close()
