"""Sign-in by an identity provider over HTTP: the way there and back, each refusal, and cookies that go nowhere else."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from http.cookies import SimpleCookie
from typing import Any

import httpx
import pytest

from service.api.auth import COOKIE as SESSION
from service.api.routes.provider_sign_in import COOKIE
from service.ledger.ports.store import StoreUnavailable
from service.store.openid_connect import OpenIdProvider
from service.workflows.provider_sign_ins import ClaimRules, Grant
from service.workflows.replica import ReplicaOptions
from tests.api.world import World, build_world, wall_clock
from tests.providers import ISSUER, REGISTRATION, FakeProvider
from tests.waiting import PATIENCE_S

BEGIN, BACK, PAGE = "/sign-in/provider", "/sign-in/callback", "/sign-in"
RULES = ClaimRules(
    title="the town",
    grants={"staff": Grant(role="curator", dataset="care"), "patients": Grant(role="individual", dataset="care")},
    role_claim="roles",
    name_claim="preferred_username",
    individual_claim="patient",
)


class Browser:
    """Sends the cookies that it was given, whatever the scheme."""

    def __init__(self, clock: Callable[[], datetime] = wall_clock) -> None:
        self.fake = FakeProvider()
        provider = OpenIdProvider(REGISTRATION, clock=wall_clock, transport=self.fake)
        self.world = build_world(clock=clock, options=ReplicaOptions(provider=(provider, RULES)))
        self.cookies: dict[str, str] = {}
        self.given: SimpleCookie = SimpleCookie()

    async def get(self, path: str, **options: Any) -> httpx.Response:
        """One request, without following a redirect."""
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        response = await self.world.client.get(path, headers=headers | options.pop("headers", {}), **options)
        for text in response.headers.get_list("set-cookie"):
            self.given = SimpleCookie(text)
            for name, morsel in self.given.items():
                self.cookies[name] = morsel.value
                if morsel["max-age"] == "0":
                    del self.cookies[name]
        return response

    async def begin(self) -> dict[str, str]:
        """The parameters with which the provider sends the browser back."""
        response = await self.get(BEGIN)
        assert response.status_code == 303
        state, code = self.fake.sign_in(response.headers["location"])
        return {"state": state, "code": code}

    async def back(self, parameters: Mapping[str, str]) -> str:
        """Come back from the provider with these parameters; return the address that the browser is sent to."""
        response = await self.get(BACK, params=dict(parameters))
        assert response.status_code == 303
        assert response.headers["cache-control"] == "no-store"
        location: str = response.headers["location"]
        return location

    async def session(self) -> httpx.Response:
        """Whose the session is."""
        return await self.get("/v1/session")


@pytest.fixture
def browser() -> Browser:
    """A browser that is not signed in, and a provider."""
    return Browser()


async def test_a_person_signs_in_and_out(browser: Browser) -> None:
    """With a session as an API key begins one, and with the role of the claim; nothing is left of the attempt."""
    parameters = await browser.begin()
    attempt = browser.given[COOKIE]
    assert (attempt["samesite"], attempt["secure"], attempt["httponly"], attempt["path"]) == ("lax", True, True, "/")
    assert await browser.back(parameters) == f"{PAGE}?done=1"
    assert list(browser.cookies) == [SESSION]
    session = (await browser.session()).json()
    assert (session["role"], session["name"], session["dataset"]) == ("curator", "Ann Ångström", "care")
    ended = await browser.world.client.delete(
        "/v1/session", headers={"Cookie": f"{SESSION}={browser.cookies[SESSION]}", "X-Sparing-Request": "1"}
    )
    assert ended.status_code == 204
    assert (await browser.session()).status_code == 401


async def test_the_session_cookie_is_strict_and_a_cookie_begins_no_longer_session(browser: Browser) -> None:
    """A session is bounded: its cookie cannot be exchanged for another."""
    parameters = await browser.begin()
    response = await browser.get(BACK, params=parameters)
    texts = response.headers.get_list("set-cookie")
    (session,) = [SimpleCookie(text)[SESSION] for text in texts if text.startswith(SESSION)]
    assert (session["samesite"], session["secure"], session["httponly"]) == ("strict", True, True)
    headers = {"Cookie": f"{SESSION}={session.value}", "X-Sparing-Request": "1"}
    assert (await browser.world.client.post("/v1/session", headers=headers)).status_code == 401


async def test_an_act_has_its_author(browser: Browser) -> None:
    """The principal is listed like one with a key, and its revocation ends the session at the next request."""
    await browser.back(await browser.begin())
    assert (await browser.get("/v1/datasets/care/budgets/summary")).status_code == 200
    listed = (await browser.world.call("curator", "GET", "/v1/principals", params={"search": "ngstr"})).json()["items"]
    assert [(row["name"], row["role"], row["dataset"]) for row in listed] == [("Ann Ångström", "curator", "care")]
    key = await browser.world.call("curator", "POST", f"/v1/principals/{listed[0]['id']}/key")
    assert (key.status_code, key.json()["errors"][0]["field"]) == (422, "principal")
    assert (await browser.world.call("curator", "DELETE", f"/v1/principals/{listed[0]['id']}")).status_code == 204
    assert (await browser.session()).status_code == 401
    assert await browser.back(await browser.begin()) == f"{PAGE}?refused=no-role"


async def test_a_token_that_lies_signs_nobody_in(browser: Browser, caplog: pytest.LogCaptureFixture) -> None:
    """The page says that it was refused, the log which check failed; no cookie is left."""
    browser.fake.change = lambda claims: claims.update({"iss": "https://other.example"})
    assert await browser.back(await browser.begin()) == f"{PAGE}?refused=refused"
    assert browser.cookies == {}
    assert "sign-in by the identity provider refused: the check of" in caplog.text
    assert "other" not in caplog.text


async def test_an_answer_to_another_attempt_signs_nobody_in(browser: Browser) -> None:
    """Without the attempt's cookie, with another browser's, with another state; the provider is not even asked."""
    parameters = await browser.begin()
    mine = dict(browser.cookies)
    other = await browser.begin()
    browser.fake.asked.clear()
    browser.cookies = {}
    assert await browser.back(parameters) == f"{PAGE}?refused=expired"
    for wrong in ({**parameters, "state": other["state"]}, {**parameters, "state": ""}, {"code": parameters["code"]}):
        browser.cookies = dict(mine)
        assert await browser.back(wrong) == f"{PAGE}?refused=expired"
    assert browser.fake.asked == []
    browser.cookies = dict(mine)
    assert await browser.back(parameters) == f"{PAGE}?done=1"


async def test_a_code_without_an_attempt_of_its_own_never_reaches_the_provider(browser: Browser) -> None:
    """One that comes with none, with another's state, or with an attempt that has come back."""
    parameters = await browser.begin()
    attempt = dict(browser.cookies)
    browser.fake.asked.clear()
    for state in ("", "x", parameters["state"][:-1]):
        assert await browser.back({"state": state, "code": "junk"}) == f"{PAGE}?refused=expired"
        browser.cookies = dict(attempt)
    assert browser.fake.asked == []
    assert await browser.back(parameters | {"code": "junk"}) == f"{PAGE}?refused=refused"
    for _ in range(3):
        browser.cookies = dict(attempt)
        assert await browser.back(parameters | {"code": "junk"}) == f"{PAGE}?refused=expired"
    assert browser.fake.asked == ["/token"]


async def test_honest_sign_ins_have_a_place_beside_strangers_codes(browser: Browser) -> None:
    """A dozen strangers, each with an attempt of its own, wait at the provider; a browser's sign-in goes on."""
    gate, inside = threading.Event(), threading.Semaphore(0)
    token = browser.fake._token

    def wait(request: httpx.Request) -> httpx.Response:
        if b"junk" in request.read():
            inside.release()
            gate.wait(60)
        return token(request)

    browser.fake._token = wait  # type: ignore[method-assign]
    strangers = []
    for _ in range(12):
        parameters = await browser.begin()
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        junk = browser.world.client.get(BACK, params=parameters | {"code": "junk"}, headers=headers)
        strangers.append(asyncio.create_task(junk))
    for _ in strangers:
        await asyncio.to_thread(inside.acquire, timeout=PATIENCE_S)
    assert await browser.back(await browser.begin()) == f"{PAGE}?done=1"
    gate.set()
    assert {told.headers["location"] for told in await asyncio.gather(*strangers)} == {f"{PAGE}?refused=refused"}


async def test_an_error_or_another_issuers_answer_signs_nobody_in(browser: Browser) -> None:
    """A person that says no at the provider; a code of another provider (RFC 9207)."""
    parameters = await browser.begin()
    denied = {"state": parameters["state"], "error": "access_denied", "error_description": "<b>no</b>"}
    assert await browser.back(denied) == f"{PAGE}?refused=denied"
    assert await browser.back({**await browser.begin(), "iss": "https://other.example"}) == f"{PAGE}?refused=refused"
    assert await browser.back({**await browser.begin(), "iss": ISSUER}) == f"{PAGE}?done=1"


async def test_a_person_without_a_role_is_told_so(browser: Browser) -> None:
    """An unknown individual is answered alike; an individual that is there reads its own budgets."""
    browser.fake.change = lambda claims: claims.update({"roles": "patients", "patient": "x"})
    assert await browser.back(await browser.begin()) == f"{PAGE}?refused=no-role"
    browser.fake.change = lambda claims: claims.update({"roles": "patients", "patient": "ada"})
    assert await browser.back(await browser.begin()) == f"{PAGE}?done=1"
    assert (await browser.get("/v1/me/budgets")).status_code == 200


async def test_a_provider_that_is_down_leaves_keys(browser: Browser) -> None:
    """At the way there, and at the way back; an API key still signs in."""
    browser.fake.is_down = True
    response = await browser.get(BEGIN)
    assert (response.status_code, response.headers["location"]) == (303, f"{PAGE}?refused=unavailable")
    browser.fake.is_down = False
    parameters = await browser.begin()
    browser.fake.is_down = True
    assert await browser.back(parameters) == f"{PAGE}?refused=unavailable"
    assert (await browser.world.call("curator", "POST", "/v1/session")).status_code == 201


async def test_a_database_that_is_away_signs_nobody_in(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says to try again."""

    def fail(_: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(browser.world.replica.sign_ins, "begin", fail)
    assert await browser.back(await browser.begin()) == f"{PAGE}?refused=unavailable"


async def test_under_a_clock_that_is_wrong_by_years_nobody_begins_or_ends_a_sign_in() -> None:
    """The page says that sign-in is unavailable."""
    ahead = [timedelta(0)]
    browser = Browser(clock=lambda: wall_clock() + ahead[0])
    parameters = await browser.begin()
    ahead[0] = timedelta(days=500 * 365)
    assert await browser.back(parameters) == f"{PAGE}?refused=unavailable"
    response = await browser.get(BEGIN)
    assert (response.status_code, response.headers["location"]) == (303, f"{PAGE}?refused=unavailable")
    ahead[0] = timedelta(0)
    assert await browser.back(await browser.begin()) == f"{PAGE}?done=1"


async def test_no_address_of_a_request_is_gone_to(browser: Browser) -> None:
    """Every redirect leads to the provider or to the sign-in page, whatever is asked."""
    evil = "https://elsewhere.example/"
    for name in ("next", "redirect_uri", "url", "return_to"):
        begun = await browser.get(BEGIN, params={name: evil}, headers={"X-Forwarded-Host": "elsewhere.example"})
        assert begun.headers["location"].startswith(f"{ISSUER}/authorize?")
        assert "elsewhere" not in begun.headers["location"]
        assert await browser.back({**await browser.begin(), name: evil}) == f"{PAGE}?done=1"
    host = await browser.get(BEGIN, headers={"Host": "elsewhere.example"})
    assert "elsewhere" not in host.headers["location"]


async def test_another_sign_in_ends_the_one_before(browser: Browser) -> None:
    """On the way to the provider; not where another site leads the browser there."""
    await browser.back(await browser.begin())
    first = {"Cookie": f"{SESSION}={browser.cookies[SESSION]}"}
    await browser.get(BEGIN, headers={"Sec-Fetch-Site": "cross-site"})
    assert (await browser.world.client.get("/v1/session", headers=first)).status_code == 200
    assert await browser.back(await browser.begin()) == f"{PAGE}?done=1"
    assert (await browser.world.client.get("/v1/session", headers=first)).status_code == 401
    assert (await browser.session()).status_code == 200


async def test_another_site_begins_no_sign_in(browser: Browser) -> None:
    """By what the browser says of a request."""
    for site in ("cross-site", "same-site"):
        response = await browser.get(BEGIN, headers={"Sec-Fetch-Site": site})
        assert (response.headers["location"], browser.cookies) == (PAGE, {})
    assert (await browser.get(BEGIN, headers={"Sec-Fetch-Site": "same-origin"})).headers["location"].startswith(ISSUER)


async def test_the_page_is_told_of_the_provider_if_there_is_one(world: World, browser: Browser) -> None:
    """By its name, for the button; without one, nothing leads there."""
    assert (await world.client.get("/sign-in/options")).json() == {"provider": None}
    for path in (BEGIN, BACK):
        assert (await world.client.get(path)).status_code == 404
    assert (await browser.get("/sign-in/options")).json() == {"provider": "the town"}
