"""A real browser on a real service: pages that may load nothing from elsewhere and log no error."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import httpx
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.e2e.http_calls import client
from tests.e2e.processes import new_key, served

PICTURES: Final = Path(__file__).parents[2] / "build" / "screenshots"
COUNTRIES: Final = ("NO", "SE", "DK")
COUNTRY: Final = {"type": "category", "categories": list(COUNTRIES)}
AGE: Final = {"type": "integer", "lower": 0, "upper": 120}
VISITS: Final = {
    "kind": "events",
    "key": "person_id",
    "rows_per_individual": 20,
    "columns": {"area": {"type": "category", "size": 50}},
}


def people_with(**columns: Mapping[str, object]) -> dict[str, object]:
    """A table of individuals with these columns."""
    return {"kind": "individuals", "key": "person_id", "columns": columns}


PEOPLE: Final = people_with(country=COUNTRY, age=AGE, member={"type": "boolean"})
TABLES: Final = {"people": PEOPLE, "visits": VISITS}
CLINIC: Final = {
    "patients": {
        "kind": "individuals",
        "key": "patient",
        "columns": {
            "ward": {"type": "category", "categories": ["Heart, lungs", "Eyes", "Skin"]},
            "height": {"type": "real", "lower": 0.5, "upper": 2.5},
            "born": {"type": "date", "lower": "1900-01-01", "upper": "2026-12-31"},
            "bill": {"type": "integer", "lower": 0, "upper": 20000},
        },
    }
}
"""The tables of a second dataset, with numbers, dates and categories that hold commas."""
PEOPLE_COUNT: Final = 400
DRAWN: Final = "new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(drawn))))"
Scheme = Literal["light", "dark"]
PATIENCE_MS: Final = 60_000
"""How long a page may take on a machine that does other work too; nothing here tests how quick pages are."""
expect.set_options(timeout=PATIENCE_MS)


def chromium() -> str | None:
    """The browser of this machine, if it has one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("SPARING_CHROMIUM") or next((path for path in map(shutil.which, names) if path), None)


@dataclass
class Site:
    """A running service with the dataset `town`, and a key of each role; the individual's is `ann`.

    `clinic` is a second dataset with three patients, and a key of an analyst of its own.
    """

    url: str
    home: Path
    keys: dict[str, str]
    asked: int = 0

    def client(self, role: str) -> httpx.Client:
        """A client with the key of a role."""
        return client(self.url, self.keys[role])

    def read(self, path: str, *, by: str = "curator", **asked: Any) -> Any:
        """The document that a role reads at a path below /v1."""
        with self.client(by) as client:
            response = client.get(f"/v1/{path}", params=asked)
        response.raise_for_status()
        return response.json()

    def add_key(self, key: str, role: str, **wish: object) -> str:
        """Make a principal's key, kept under a name of its own; the principal's id."""
        with self.client("curator") as curator:
            response = curator.post("/v1/principals", json={"role": role, "name": key} | wish)
        response.raise_for_status()
        made = response.json()
        self.keys[key] = made["key"]
        return str(made["id"])

    def add(self, registration: dict[str, object], rows: str) -> None:
        """Register a dataset with these rows of people."""
        with self.client("curator") as curator:
            curator.post("/v1/datasets", json=registration).raise_for_status()
        self.upload(f"{registration['name']}/tables/people", rows)

    def upload(self, place: str, rows: str) -> None:
        """Upload rows of CSV into the table at a place."""
        headers = {"Content-Type": "text/csv"}
        with self.client("curator") as curator:
            curator.post(f"/v1/datasets/{place}/rows", content=rows.encode(), headers=headers).raise_for_status()

    def ask(self, *, dataset: str = "town", by: str = "analyst", sigma: float = 20.0, **other: object) -> None:
        """One count of people, or what `other` fields make of it, never asked before."""
        self.asked += 1
        query = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": sigma}, "reuse": False} | other
        headers = {"Idempotency-Key": f"asked-{self.asked}"}
        with self.client(by) as analyst:
            analyst.post(f"/v1/datasets/{dataset}/queries", json=query, headers=headers).raise_for_status()


@contextmanager
def open_site(home: Path) -> Iterator[Site]:
    """A service with data and ten queries, which holds no response: nothing here looks at time."""
    with served(home, SPARING_RELEASE_SLOT_MS="0") as running:
        site = Site(running.url, home, {"curator": new_key(home, "curator")})
        _fill(site)
        wishes = {"analyst": {"allowance_rho": "0.2"}, "individual": {"individual": "ann"}, "auditor": {}}
        for role, wish in wishes.items():
            site.add_key(role, role, name=f"{role} of the town", dataset="town", **wish)
        site.add_key("clinic", "analyst", name="analyst of the clinic", dataset="clinic")
        for number in range(10):
            site.ask(where={"ge": [{"col": "age"}, number * 8]})
        yield site


def _fill(site: Site) -> None:
    with site.client("curator") as curator:
        for dataset, tables in (("town", TABLES), ("clinic", CLINIC)):
            promise = {"epsilon": "1", "delta": "1e-6"}
            registration = {"name": dataset, "guarantee": promise, "capacity": 1000, "tables": tables}
            curator.post("/v1/datasets", json=registration).raise_for_status()
    names = ["ann", *(f"p{number}" for number in range(1, PEOPLE_COUNT))]
    people = [
        f"{name},{COUNTRIES[n % 3]},{(n * 7) % 90},{'true' if n % 2 else 'false'}" for n, name in enumerate(names)
    ]
    # Everyone asked about by age has a different history, so that budgets differ.
    people[0] = "ann,NO,80,true"
    visits = [f"{name},{(n * 3 + each) % 50}" for n, name in enumerate(names) for each in range(n % 4)]
    patients = ['pia,"Heart, lungs",1.72,1970-05-03,120', "sam,Eyes,1.8,2001-01-31,4000", "kim,Skin,0.9,2020-11-01,60"]
    for place, header, rows in (
        ("town/tables/people", "person_id,country,age,member", people),
        ("town/tables/visits", "person_id,area", visits),
        ("clinic/tables/patients", "patient,ward,height,born,bill", patients),
    ):
        site.upload(place, "\n".join([header, *rows]) + "\n")


@dataclass
class Visit:
    """A page of the site in a context of its own, and everything it did that it must not do."""

    site: Site
    page: Page
    context: BrowserContext
    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Patterns of console errors that a test brings about: a refused request is logged by the browser."""
    asked: set[Request] = field(default_factory=set)
    """The requests that are under way, but for streams of events, which never end."""

    def enter(self, role: str, path: str = "", *, key: str = "") -> Page:
        """Sign in by a request of the browser's, and go to a page: that of the role, or another one of its pages."""
        headers = {"Authorization": f"Bearer {self.site.keys[key or role]}", "X-Sparing-Request": "1"}
        signed_in = self.context.request.post(f"{self.site.url}/v1/session", headers=headers)
        if not signed_in.ok:
            raise RuntimeError(signed_in.text())
        self.go(path or f"/{role}")
        return self.page

    def sign_in(self, role: str, *, key: str = "") -> None:
        """Through the form, as a person does, with the key of the role or another one of the site."""
        self.page.goto(f"{self.site.url}/sign-in")
        self.page.get_by_label("API key").fill(self.site.keys[key or role])
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"**/{role}**")

    def go(self, path: str) -> None:
        """To an address of the site, until it is drawn."""
        self.asked.clear()
        self.page.goto(f"{self.site.url}{path}")
        self.page.locator("main :is(h1, h2)").first.wait_for()

    def settle(self) -> None:
        """Wait until every request is answered and the page has drawn what came."""
        self.page.wait_for_load_state("load")
        is_drawn = False
        while not is_drawn:
            expect(self.page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
            for request in list(self.asked):
                request.response()
            self.page.evaluate(DRAWN)
            is_drawn = not self.asked

    def picture(self, name: str, *, is_whole: bool = True) -> None:
        """Keep a picture of the whole page, or of the window."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=is_whole)

    def checked(self) -> list[str]:
        """The complaints that no test has brought about."""
        return [each for each in self.complaints if not any(re.search(pattern, each) for pattern in self.expected)]


@contextmanager
def visiting(browser: Browser, site: Site, *, scheme: Scheme = "light", width: int = 1280) -> Iterator[Visit]:
    """A visit; at its end nothing was loaded from elsewhere and no error was logged."""
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, reduced_motion="reduce", accept_downloads=True
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    visit = Visit(site, page, context)

    def on_console(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            visit.complaints.append(f"console: {message.text}")

    def on_request(request: Request) -> None:
        if not request.url.startswith((site.url, "blob:", "data:")):
            visit.complaints.append(f"elsewhere: {request.url}")
        if request.resource_type != "eventsource":
            visit.asked.add(request)

    def on_end(request: Request) -> None:
        visit.asked.discard(request)

    page.on("console", on_console)
    page.on("pageerror", lambda error: visit.complaints.append(f"error: {error}"))
    page.on("request", on_request)
    page.on("requestfinished", on_end)
    page.on("requestfailed", on_end)
    try:
        yield visit
        assert visit.checked() == [], visit.checked()
    finally:
        context.close()


@contextmanager
def open_browser(path: str) -> Iterator[Browser]:
    """Headless."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()
