"""The dashboard in a real browser."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.browser import browser, watched
from support.fake_numbers import BOUNDS_MS, PHASES, model, numbers
from support.served import FakeService, HttpPort, Wire, fake_port, post

from mindspore_lite.cli.demo import DIGITS_MODEL
from mindspore_lite.server.http import dashboard
from mindspore_lite.server.server import Server

TOKEN, ADMIN = "a-token-of-the-tests", "an-administrator-s-token"
DIGIT = {"name": "x", "shape": [1, 1, 8, 8], "datatype": "FP32", "data": [0.5] * 64}
PHONE, DESK, WALL = (360, 740), (1440, 900), (3840, 2160)

UNNAMED = """() => [...document.querySelectorAll(
    "button, input, select, textarea, [role=img], [role=table], dialog, section")]
  .filter((one) => !one.closest("[hidden]"))
  .filter((one) => !(one.getAttribute("aria-label") || one.labels?.length || one.innerText?.trim()
    && one.tagName === "BUTTON" || document.getElementById(one.getAttribute("aria-labelledby"))))
  .map((one) => one.outerHTML.slice(0, 100))"""

FAINT = """() => {
  const rgb = (text) => {
    const found = text.match(/[\\d.]+/g).map(Number);
    return found.length === 3 ? [...found, 1] : found;
  };
  const style = (one) => getComputedStyle(one);
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
  const back = (one) => {
    const chain = [];
    for (let at = one; at; at = at.parentElement) chain.push(rgb(style(at).backgroundColor));
    return chain.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const light = (c) => c.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const seen = (one) => one.offsetParent && !one.disabled && !one.closest(".skip, .unseen, thead")
    && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  return [...document.querySelectorAll("body *")]
    .filter(seen)
    .map((one) => {
      const pair = [light(rgb(style(one).color)), light(back(one))].sort((a, b) => b - a);
      return [(pair[0] + 0.05) / (pair[1] + 0.05), one.outerHTML.slice(0, 90)];
    })
    .filter(([contrast]) => contrast < 4.5);
}"""

WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1
    && !one.closest(".unseen, thead, pre, .skip, svg, .uplot, td"))
  .map((one) => one.outerHTML.slice(0, 100))"""

DRAWN = """(canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
  .filter((value, at) => at % 4 === 3 && value).length"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def expect(chromium: Any) -> Any:
    from playwright.sync_api import expect

    return expect


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    files = {"digits": DIGITS_MODEL, "other": DIGITS_MODEL}
    with Server(files, http_port=0, grpc=False) as found:
        yield found


@pytest.fixture
def made_up() -> Iterator[HttpPort]:
    """A port whose numbers are made up: those of a bad night, which stay as they are."""
    ending = threading.Event()

    def feed(port: HttpPort) -> None:
        for second in range(1, 40):
            port.core.history.add(troubled(second), float(second))
        now_s = 40.0
        while not ending.is_set():
            port.core.history.add(troubled(40), now_s)
            now_s += 0.01
            ending.wait(0.2)

    with fake_port(FakeService()) as found:
        thread = threading.Thread(target=feed, args=(found,))
        thread.start()
        try:
            yield found
        finally:
            ending.set()
            thread.join()


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}/dashboard"


@contextmanager
def loaded(server: Server) -> Iterator[None]:
    """A client that asks until the block ends."""
    ending = threading.Event()

    def ask() -> None:
        with Wire(server.http_port) as wire:
            while not ending.is_set():
                assert wire.ask(post("/v2/models/digits/infer", {"inputs": [DIGIT]})).status == 200

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def troubled(second: int) -> dict[str, Any]:
    """The numbers of a bad night, at a second of it."""
    bad = model(
        "fake",
        success=100 * second,
        slots=["computing", "stuck", "idle", "gathering"],
        queued=60,
        failed={"deadline": second, "cancelled": 0, "error": 0, "crash": 0},
        rejected={"queue_full": 5 * second, "timeout": 0, "memory": 0, "not_ready": 0},
        phases_ns=dict.fromkeys(PHASES, 100 * second * 1_000_000),
        latency={"bounds_ms": BOUNDS_MS, "counts": [0, 90 * second, 9 * second, second, 0]},
        batches={"1": 7 * second, "4": second},
        weights_version=2,
        weights_updated=1_789_999_000.0,
    )
    broken = model("broken", state="UNAVAILABLE", reason="it failed its probe")
    slow = {
        "time": 1_790_000_000.0, "model": "fake", "version": "1", "id": "<img src=x onerror=x>",
        "ms": 9.5, "status": 504, "phases_ms": {**dict.fromkeys(PHASES, 0.5), "queue": 6.5},
    }  # fmt: skip
    mark = {"model": "fake", "version": "1", "text": "", "count": 1}
    marks = [
        {**mark, "time": 1_789_999_990.0, "what": "weights"},
        {**mark, "time": 1_789_999_980.0, "what": "reload_failed", "text": "<b>no</b>"},
    ]
    return numbers(bad, broken, slowest=[slow], marks=marks, ready=False, reason="not ready: x")


def open_troubled(page: Any, port: HttpPort, expect: Any) -> None:
    """A page that shows the bad night."""
    page.goto(address(port.number))
    expect(page.locator("#health")).to_contain_text("not ready")
    expect(page.locator("#split li").first).to_be_visible()


def test_numbers_move_under_load(chromium: Any, expect: Any, server: Server) -> None:
    with watched(chromium) as found, loaded(server):
        page = found.page
        page.goto(address(server.http_port))
        expect(page.locator("#health")).to_contain_text("ready")
        row = page.locator("#rows tr", has_text="digits")
        expect(row.locator("td").nth(2)).to_have_text(re.compile(r"^[1-9][\d.,]* ?[kM]?$"))
        expect(row.locator("td").nth(5)).to_contain_text("ms")
        row.get_by_role("button").click()
        expect(page.locator("#detail-title")).to_have_text("digits version 1")
        expect(page.locator("#split p")).to_contain_text("The mean successful request took")
        expect(page.locator("#latency .readout")).to_contain_text("requests")
        expect(page.locator("#slow-rows tr").first).to_contain_text("digits v1")
        uptime = page.locator("#uptime").inner_text()
        expect(page.locator("#uptime")).not_to_have_text(uptime)
        expect(page).to_have_title(re.compile("ready"))


def test_a_request_is_sent_from_the_page(chromium: Any, expect: Any, server: Server) -> None:
    with watched(chromium) as found:
        page = found.page
        page.goto(address(server.http_port))
        page.locator("#rows").get_by_role("button", name="other").click()
        expect(page.locator("#try-hint")).to_contain_text("other version 1")
        shape = page.get_by_label("Shape")
        expect(shape).to_have_value("1, 1, 8, 8")
        shape.fill("2, 1, 8, 8")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#try-said")).to_contain_text("✓ 200 after")
        expect(page.locator("#try-answer")).to_contain_text("FP32 [2, 10]")
        page.get_by_label("How to fill x").select_option("own")
        page.get_by_label("Values of x").fill("[[1, 2]")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#try-said")).to_contain_text("must be a JSON list")
        expect(page.locator("#try-answer")).to_be_hidden()


def test_an_error_of_the_server_is_shown(chromium: Any, expect: Any, server: Server) -> None:
    with watched(chromium, complains=True) as found:  # the browser itself logs a 400
        page = found.page
        page.goto(address(server.http_port))
        page.get_by_label("Shape").fill("1, 8, 8")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#try-said")).to_contain_text("✕ 400")
        assert all("400" in text for text in found.complaints)


def test_everything_that_is_wrong_is_said(chromium: Any, expect: Any, made_up: HttpPort) -> None:
    with watched(chromium, complains=True) as found:  # `broken` has no metadata
        page = found.page
        open_troubled(page, made_up, expect)
        verdict = page.locator("#verdict")
        expect(verdict).to_contain_text("Not ready: x.")
        expect(verdict).to_contain_text("fake version 1 has 1 stuck slot.")
        expect(verdict).to_contain_text("And 2 more.")
        expect(page).to_have_title(re.compile("not ready"))
        row = page.locator("#rows tr").first
        expect(row).to_contain_text("200 queue full")
        expect(row).to_contain_text("40 deadline passed")
        expect(row).to_contain_text("60 of 64")
        expect(row).to_contain_text("update 2, 16 min 40 s ago")
        expect(page.locator(".slot[data-state=stuck]")).to_contain_text("! stuck 100 %")
        slow = page.locator("#slow-rows tr")
        expect(slow).to_contain_text("<img src=x onerror=x>")
        expect(slow).to_contain_text("queue 68 %")
        expect(page.locator("#marks li").nth(1)).to_contain_text("<b>no</b>")
        expect(page.locator("#queue .readout")).to_contain_text("60 queued of 64")
        for canvas in page.locator("#detail canvas").all():
            assert canvas.evaluate(DRAWN) > 100
        assert page.locator("#detail canvas").count() == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK, WALL], ids=["phone", "desk", "wall"])
def test_it_fits_and_can_be_read(
    chromium: Any, expect: Any, made_up: HttpPort, size: tuple[int, int], scheme: str
) -> None:
    width, height = size
    view = {"width": width, "height": height}
    with watched(chromium, complains=True, viewport=view, color_scheme=scheme) as found:
        page = found.page
        open_troubled(page, made_up, expect)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(WIDE) == []
        assert page.evaluate(FAINT) == []
        assert page.evaluate(UNNAMED) == []


def test_the_theme_can_be_chosen(chromium: Any, expect: Any, server: Server) -> None:
    with watched(chromium, color_scheme="light") as found:
        page = found.page
        page.goto(address(server.http_port))
        button = page.get_by_role("button", name="Theme")
        colours = []
        for word in ("auto", "light", "dark"):
            expect(button).to_have_text(f"Theme: {word}")
            colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            button.click()
        assert colours[0] == colours[1] != colours[2]
        button.click()
        page.reload()
        expect(button).to_have_text("Theme: light")


def test_it_can_be_used_by_keyboard(chromium: Any, expect: Any, server: Server) -> None:
    with watched(chromium, reduced_motion="reduce") as found:
        page = found.page
        page.goto(address(server.http_port))
        expect(page.locator("#rows tr")).to_have_count(2)
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the models")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        first = page.locator("#rows").get_by_role("button").first
        expect(first).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        second = page.locator("#rows").get_by_role("button").nth(1)
        expect(second).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#detail-title")).to_have_text("other version 1")
        expect(second).to_be_focused()  # also after the next numbers
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowRight")
        expect(page.get_by_label("15 min")).to_be_checked()
        page.keyboard.press("Tab")
        expect(page.locator("#latency .plot")).to_be_focused()
        page.keyboard.press("ArrowLeft")
        moves = "getComputedStyle(document.querySelector('.bar i')).transitionDuration"
        assert page.evaluate(moves) == "0s"


def test_a_server_with_tokens_asks_for_one(chromium: Any, expect: Any) -> None:
    with (
        Server([DIGITS_MODEL], http_port=0, grpc=False, tokens=[TOKEN]) as server,
        watched(chromium, complains=True) as found,  # the browser itself logs a 401
    ):
        page = found.page
        page.goto(address(server.http_port))
        dialog = page.get_by_role("dialog", name="Token")
        expect(dialog).to_be_visible()
        expect(page.locator("#verdict")).to_have_text("The server asks for a token.")
        page.get_by_role("textbox", name="Token").fill("wrong-token-0123456789")
        page.keyboard.press("Enter")
        expect(page.locator("#verdict")).to_have_text("The server does not take this token.")
        page.get_by_role("textbox", name="Token").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("#health")).to_contain_text("ready")
        expect(page.locator("#try-hint")).to_contain_text("digits version 1")
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#try-said")).to_contain_text("✓ 200")
        expect(page.locator("#admin")).to_be_hidden()
        assert TOKEN not in page.url
        page.reload()
        expect(page.locator("#health")).to_contain_text("ready")
        page.get_by_role("button", name="Token", exact=True).click()
        page.get_by_role("button", name="Forget it").click()
        expect(page.locator("#health")).to_contain_text("locked")


def test_an_administrator_can_load_and_unload(chromium: Any, expect: Any) -> None:
    """The repository is played by the test: what counts is what the page asks for."""
    asked: list[tuple[str, str]] = []

    def repository(route: Any) -> None:
        request = route.request
        assert request.headers["authorization"] == f"Bearer {ADMIN}"
        asked.append((request.method, request.url.partition("/v2/")[2]))
        if request.url.endswith("/index"):
            route.fulfill(json=[{"name": "digits"}, {"name": "a <b>"}])
        elif request.url.endswith("/unload"):
            route.fulfill(status=503, json={"error": "it is busy"})
        else:
            route.fulfill(status=200)

    with (
        Server([DIGITS_MODEL], http_port=0, grpc=False, admin_tokens=[ADMIN]) as server,
        watched(chromium, complains=True) as found,  # the browser itself logs the 503
    ):
        server.core.extensions.append("model_repository")
        page = found.page
        page.route("**/v2/repository/**", repository)
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(address(server.http_port))
        expect(page.locator("#health")).to_contain_text("ready")
        expect(page.locator("#admin")).to_be_hidden()
        page.get_by_role("button", name="Token", exact=True).click()
        page.get_by_role("textbox", name="Token").fill(ADMIN)
        page.keyboard.press("Enter")
        page.get_by_label("Model of the repository").select_option("a <b>")
        page.get_by_role("button", name="Load, or load again").click()
        expect(page.locator("#admin-said")).to_have_text("✓ load of a <b>: done")
        page.get_by_role("button", name="Unload").click()
        expect(page.locator("#admin-said")).to_have_text("✕ unload of a <b>: it is busy")
    base = "repository/models/a%20%3Cb%3E"
    index = ("POST", "repository/index")
    assert asked == [index, ("POST", f"{base}/load"), index, ("POST", f"{base}/unload")]


def test_a_server_that_is_gone_is_said(chromium: Any, expect: Any, made_up: HttpPort) -> None:
    with watched(chromium, complains=True) as found:
        page = found.page
        open_troubled(page, made_up, expect)
        made_up.close()
        expect(page.locator("#health")).to_contain_text("no contact")
        expect(page.locator("#verdict")).to_contain_text("No contact with the server")
        expect(page.locator("#contact")).to_contain_text("numbers of")


def test_a_page_without_charts_says_so(
    chromium: Any, expect: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: Callable[..., bytes | None] = dashboard.content_of
    monkeypatch.setattr(dashboard, "content_of", lambda file: known(file) if file.is_ours else None)
    with watched(chromium, complains=True) as found:
        page = found.page
        page.goto(address(server.http_port))
        expect(page.locator("#no-charts")).to_contain_text("pip install uplot-python")
        expect(page.locator("#rows tr")).to_have_count(2)
        assert all("404" in text or "MIME" in text for text in found.complaints)
