"""A real browser on a real service: pages that may load nothing from elsewhere and log no error."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import httpx
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.e2e.http_calls import client
from tests.e2e.processes import new_key, served

PICTURES: Final = Path(__file__).parents[2] / "build" / "screenshots"
TABLES: Final = {
    "people": {
        "kind": "individuals",
        "key": "person_id",
        "columns": {
            "country": {"type": "category", "categories": ["NO", "SE", "DK"]},
            "age": {"type": "integer", "lower": 0, "upper": 120},
            "member": {"type": "boolean"},
        },
    },
    "visits": {
        "kind": "events",
        "key": "person_id",
        "rows_per_individual": 20,
        "columns": {"area": {"type": "category", "size": 50}},
    },
}
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
"""Of a second dataset, with numbers, dates and categories that hold commas."""
PEOPLE_COUNT: Final = 400
COUNTRIES: Final = ("NO", "SE", "DK")
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

    def add(self, registration: dict[str, object], rows: str, *, analyst: dict[str, object]) -> None:
        """Register a dataset with these rows of people, and keep the key of an analyst of it under its own name."""
        name = registration["name"]
        with self.client("curator") as curator:
            curator.post("/v1/datasets", json=registration).raise_for_status()
            address = f"/v1/datasets/{name}/tables/people/rows"
            curator.post(address, content=rows, headers={"Content-Type": "text/csv"}).raise_for_status()
            wish = {"role": "analyst", "name": f"analyst of the {name}", "dataset": name} | analyst
            self.keys[str(name)] = curator.post("/v1/principals", json=wish).json()["key"]

    def ask(self, *, sigma: float = 20.0, where: dict[str, object] | None = None, **other: object) -> float:
        """One count of people, or what `other` fields make of it, never asked before; the first number."""
        self.asked += 1
        query: dict[str, object] = {"version": 1, "select": [{"count": {}}], "noise": {"sigma": sigma}, "reuse": False}
        if where is not None:
            query["where"] = where
        query |= other
        with self.client("analyst") as analyst:
            response = analyst.post(
                "/v1/datasets/town/queries", json=query, headers={"Idempotency-Key": f"asked-{self.asked}"}
            )
        response.raise_for_status()
        answer: float = response.json()["values"][0]
        return answer


@contextmanager
def open_site(home: Path) -> Iterator[Site]:
    """A service with data and ten queries."""
    with served(home) as running:
        site = Site(running.url, home, {"curator": new_key(home, "curator")})
        with site.client("curator") as curator:
            _fill(curator)
            for role in ("analyst", "individual", "auditor"):
                wish = {"role": role, "name": f"{role} of the town", "dataset": "town"}
                wish |= {"individual": "ann"} if role == "individual" else {}
                wish |= {"allowance_rho": "0.2"} if role == "analyst" else {}
                response = curator.post("/v1/principals", json=wish)
                response.raise_for_status()
                site.keys[role] = response.json()["key"]
            wish = {"role": "analyst", "name": "analyst of the clinic", "dataset": "clinic"}
            site.keys["clinic"] = curator.post("/v1/principals", json=wish).json()["key"]
        for number in range(10):
            site.ask(where={"ge": [{"col": "age"}, number * 8]})
        yield site


def _fill(curator: httpx.Client) -> None:
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
        content = "\n".join([header, *rows]) + "\n"
        address = f"/v1/datasets/{place}/rows"
        curator.post(address, content=content, headers={"Content-Type": "text/csv"}).raise_for_status()


@dataclass
class Visit:
    """A page of the site in a context of its own, and everything it did that it must not do."""

    site: Site
    page: Page
    context: BrowserContext
    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Patterns of console errors that a test brings about: a refused request is logged by the browser."""

    def sign_in(self, role: str, *, key: str = "") -> None:
        """Through the form, as a person does, with the key of the role or another one of the site."""
        self.page.goto(f"{self.site.url}/sign-in")
        self.page.get_by_label("API key").fill(self.site.keys[key or role])
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"**/{role}**")

    def go(self, path: str) -> None:
        """To an address of the site, until it is drawn."""
        self.page.goto(f"{self.site.url}{path}")
        self.page.locator("main :is(h1, h2)").first.wait_for()

    def picture(self, name: str) -> None:
        """Keep a picture of the whole page."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)

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

    page.on("console", on_console)
    page.on("pageerror", lambda error: visit.complaints.append(f"error: {error}"))
    page.on("request", on_request)
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
