"""Sign-in by a real identity provider on the real page: to the provider, back, and to the person's own page."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.browser import Site, Visit, visiting
from tests.e2e.homes import Homes
from tests.e2e.http_calls import register
from tests.e2e.processes import new_key, served
from tests.waiting import until

pytestmark = pytest.mark.browser

ROLES = {"curators": {"role": "curator"}, "survey-patients": {"role": "individual", "dataset": "survey"}}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def _provider(issuer: str, people: dict[str, dict[str, Any]]) -> Iterator[None]:
    """A provider in a process of its own, which knows these people by subject."""
    port = issuer.rpartition(":")[2]
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", port, "--require-nonce", "true"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: _answers(issuer))
            for subject, claims in people.items():
                httpx.put(f"{issuer}/users/{subject}", json=claims).raise_for_status()
            yield
        finally:
            process.send_signal(signal.SIGTERM)


def _answers(address: str) -> bool:
    try:
        return httpx.get(address).is_success
    except httpx.HTTPError:
        return False


def _through_the_provider(visit: Visit, subject: str) -> None:
    visit.page.goto(f"{visit.site.url}/")
    visit.page.get_by_role("link", name="Sign in with the town").click()
    visit.page.get_by_placeholder("sub").fill(subject)
    visit.page.get_by_role("button", name="Authorize").click()


def test_people_sign_in_by_their_organisations_provider(browser: Browser, homes: Homes) -> None:
    """A curator and an individual, each to its own page; one without a role or a state is refused."""
    people = {
        "ann": {"preferred_username": "Ann of the town", "roles": ["staff", "curators"]},
        "bob": {"preferred_username": "Bob", "roles": ["survey-patients"], "key": "bob"},
        "guest": {"preferred_username": "Guest", "roles": ["guests"]},
    }
    home = homes.begun()
    port, issuer = _free_port(), f"http://localhost:{_free_port()}"
    settings = {
        "SPARING_OIDC_ISSUER": issuer,
        "SPARING_OIDC_CLIENT_ID": "sparing",
        "SPARING_OIDC_CLIENT_SECRET": "of the client",
        "SPARING_OIDC_ORIGIN": f"http://127.0.0.1:{port}",
        "SPARING_OIDC_ROLES": json.dumps(ROLES),
        "SPARING_OIDC_INDIVIDUAL_CLAIM": "key",
        "SPARING_OIDC_TITLE": "the town",
    }
    with served(home, "--port", str(port), **settings) as running:
        site = Site(running.url, home, {"curator": new_key(home, "curator")})
        register(running.url, site.keys["curator"])
        assert running.url == settings["SPARING_OIDC_ORIGIN"]
        with visiting(browser, site) as visit:
            visit.expected += [
                rf"elsewhere: {issuer}",
                r"elsewhere: https://\S+\.css",
                "ERR_",
                "status of 404",
                "status of 401",  # of what is under way at a sign-out
            ]  # its pages
            visit.page.route(re.compile(r"https://.*\.css"), lambda route: route.abort())
            _signs_in_by_key_while_the_provider_is_down(visit)
            with _provider(issuer, people):
                _signs_in_and_out(visit)
                _is_refused(visit)


def _signs_in_by_key_while_the_provider_is_down(visit: Visit) -> None:
    page = visit.page
    page.goto(f"{visit.site.url}/sign-in")
    page.get_by_role("link", name="Sign in with the town").click()
    page.wait_for_url("**/sign-in?refused=unavailable")
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached now")
    visit.sign_in("curator")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")


def _signs_in_and_out(visit: Visit) -> None:
    page = visit.page
    _through_the_provider(visit, "ann")
    page.wait_for_url("**/curator")
    expect(page.get_by_text("Ann of the town (curator)")).to_be_visible()
    cookies = {cookie["name"]: cookie for cookie in visit.context.cookies(visit.site.url)}
    assert cookies.keys() == {"sparing_session"}
    assert (cookies["sparing_session"]["sameSite"], cookies["sparing_session"]["httpOnly"]) == ("Strict", True)
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")
    _through_the_provider(visit, "bob")
    page.wait_for_url("**/individual")
    expect(page.get_by_text("bob (individual)")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in")


def _is_refused(visit: Visit) -> None:
    page = visit.page
    _through_the_provider(visit, "guest")
    page.wait_for_url("**/sign-in?refused=no-role")
    expect(page.get_by_role("alert")).to_contain_text("have no role here")
    page.get_by_role("link", name="Sign in with the town").click()
    page.get_by_role("button", name="Deny").click()
    page.wait_for_url("**/sign-in?refused=expired")  # this provider denies without the state
    expect(page.get_by_role("alert")).to_contain_text("began in another browser")
    assert visit.context.cookies(visit.site.url) == []
