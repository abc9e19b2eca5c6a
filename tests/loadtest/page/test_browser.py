"""Is the page in a real browser what it is meant to be: quiet, whole and readable, light and dark, wide and narrow?"""

import base64
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from minutewheel.loadtest.page import page_of
from minutewheel.loadtest.report import Report
from playwright.sync_api import Browser, Error, Page, sync_playwright

pytestmark = pytest.mark.browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
CONTRAST_MIN = 4.5
SCHEMES = ("light", "dark")
WIDTHS_PX = (1_280, 390)

BOXES = """() => [...document.querySelectorAll('svg.area, figure, table, .tiles, .verdict, .legend, .x, .y, .chip')]
  .filter(one => one.checkVisibility() && !one.closest('.sideways table'))
  .map(one => { const box = one.getBoundingClientRect();
    return { what: `${one.tagName}.${one.getAttribute('class')} ${one.textContent.slice(0, 30)}`,
      area: one.matches('svg.area'), scrolled: !!one.closest('.sideways'),
      left: box.left, right: box.right, width: box.width, height: box.height } })"""

TEXTS = """() => {
  const colour = text => { const parts = text.match(/[\\d.]+/g).map(Number);
    return parts.length == 4 ? parts : [...parts, 1] };
  const ground = one => { for (let at = one; at; at = at.parentElement) {
    const found = colour(getComputedStyle(at).backgroundColor); if (found[3] == 1) return found }
    throw new Error('no ground under ' + one.textContent) };
  document.querySelectorAll('details').forEach(one => one.open = true);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode()) { const one = walker.currentNode.parentElement;
    if (one.closest('svg') || !walker.currentNode.data.trim() || !one.checkVisibility()) continue;
    found.push({ text: walker.currentNode.data.slice(0, 40), ink: colour(getComputedStyle(one).color),
      ground: ground(one), px: parseFloat(getComputedStyle(one).fontSize) }) }
  return found }"""

OVERLAPS = """() => ['.x', '.y'].flatMap(kind => [...document.querySelectorAll('.frame')].flatMap(frame => {
  const boxes = [...frame.querySelectorAll(kind)].filter(one => one.checkVisibility())
    .map(one => ({ text: one.textContent, box: one.getBoundingClientRect() }));
  return boxes.flatMap((one, at) => boxes.slice(at + 1).filter(other =>
    one.box.left < other.box.right && other.box.left < one.box.right &&
    one.box.top < other.box.bottom && other.box.top < one.box.bottom)
    .map(other => `${one.text} on ${other.text}`)) }))"""

PIXELS = """async picture => { const image = new Image(); image.src = 'data:image/png;base64,' + picture;
  await image.decode(); const canvas = new OffscreenCanvas(image.width, image.height), to = canvas.getContext('2d');
  to.drawImage(image, 0, 0); const data = to.getImageData(0, 0, image.width, image.height).data, counts = {};
  for (let at = 0; at < data.length; at += 4) {
    const key = `${data[at]},${data[at + 1]},${data[at + 2]}`; counts[key] = (counts[key] || 0) + 1 }
  return counts }"""
"""How often each colour is in a picture: the browser can read what it wrote."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's, else the one that playwright has put away."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        started, why = None, ""
        try:
            started = playwright.chromium.launch(executable_path=found, args=[*QUIET, *sandbox])
        except Error as error:
            why = error.message.splitlines()[0]
        if not started:
            pytest.fail(f"no Chromium ({why}): make browser, or .venv/bin/playwright install chromium", pytrace=False)
        yield started
        started.close()


@pytest.fixture(scope="module")
def page_file(full_report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(page_of(full_report), encoding="utf-8")
    return file


class Shown:
    """The page in one scheme and width, with all that it said and asked for while it was opened."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("dialog", lambda dialog: self.said.append(dialog.message))
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(file.as_uri(), wait_until="networkidle")


@pytest.fixture(scope="module", params=[(scheme, width) for scheme in SCHEMES for width in WIDTHS_PX], ids=str)
def shown(request: pytest.FixtureRequest, browser: Browser, page_file: Path) -> Iterator[Shown]:
    scheme, width = request.param
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    yield Shown(context.new_page(), page_file)
    context.close()


def test_it_says_nothing_and_asks_for_nothing_but_itself(shown: Shown, page_file: Path) -> None:
    assert shown.said == []
    assert [url for url in shown.asked if not url.startswith("data:")] == [page_file.as_uri()]


def test_all_that_is_drawn_has_room_and_stays_within_the_page(shown: Shown, full_report: Report) -> None:
    width = shown.page.viewport_size["width"]  # type: ignore[index]
    assert shown.page.evaluate("document.documentElement.scrollWidth") == width
    boxes: list[dict[str, Any]] = shown.page.evaluate(BOXES)
    areas = [box for box in boxes if box["area"]]
    assert len(areas) == 5 + 2 * len(full_report.processes), "lateness, two over time, load, owners; CPU and memory"
    assert [box for box in areas if box["width"] < 100 or box["height"] < 40] == []
    astray = [box for box in boxes if not box["scrolled"] and not (box["left"] >= 0 and box["right"] <= width)]
    assert astray == []


def test_labels_of_axes_do_not_lie_on_each_other(shown: Shown) -> None:
    assert shown.page.evaluate(OVERLAPS) == []


def test_all_text_stands_out_from_its_ground(shown: Shown) -> None:
    texts: list[dict[str, Any]] = shown.page.evaluate(TEXTS)
    assert len(texts) > 200
    weak = [(one["text"], contrast(one["ink"], one["ground"])) for one in texts]
    assert [(text, seen) for text, seen in weak if seen < CONTRAST_MIN] == []
    assert min(one["px"] for one in texts) >= 10


def test_on_paper_it_is_dark_on_light_whatever_the_scheme(shown: Shown) -> None:
    shown.page.emulate_media(media="print")
    texts: list[dict[str, Any]] = shown.page.evaluate(TEXTS)
    canvas = shown.page.evaluate("getComputedStyle(document.documentElement).colorScheme")
    shown.page.emulate_media(media="screen")
    assert canvas == "light"
    assert min(luminance(one["ground"]) for one in texts if len(one["text"]) > 1) > 0.4
    assert min(contrast(one["ink"], one["ground"]) for one in texts) >= CONTRAST_MIN


def test_lines_stand_out_from_the_paper(shown: Shown) -> None:
    """3 to 1 is what shapes need."""
    inks = shown.page.evaluate(
        "[...document.querySelectorAll('.area .line')].map(one => getComputedStyle(one).stroke.match(/[0-9.]+/g))"
    )
    paper = shown.page.evaluate("getComputedStyle(document.querySelector('.chart')).backgroundColor.match(/[0-9.]+/g)")
    assert len(inks) >= 6
    assert min(contrast([*map(float, ink)], [*map(float, paper)]) for ink in inks) >= 3


def test_a_picture_of_it_is_as_light_as_the_scheme_and_not_blank(shown: Shown) -> None:
    dark = shown.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    picture = base64.b64encode(shown.page.screenshot()).decode()
    blank = shown.page.context.new_page()
    colours: dict[str, int] = blank.evaluate(PIXELS, picture)
    most = max(colours, key=lambda colour: colours[colour])
    assert (luminance([*map(int, most.split(","))]) < 0.1) == dark
    assert len(colours) > 100, "text and lines, with smooth edges"
    assert colours[most] < 0.95 * sum(colours.values())


def contrast(ink: list[float], ground: list[float]) -> float:
    """As the accessibility guidelines reckon it."""
    low, high = sorted((luminance(ink), luminance(ground)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: Any) -> float:
    linear = [
        part / 255 / 12.92 if part / 255 <= 0.04045 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in colour[:3]
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
