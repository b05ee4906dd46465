"""The pages' own requests, and curl's, reach the individual whose key an address easily turns into another address."""

import json
import shutil
import subprocess
from collections.abc import Iterator

import httpx
import pytest

from tests.dashboard.browser import PEOPLE, Site, Visit
from tests.hostile_keys import HOSTILE, address_of
from tests.rotation import times

DATASET = "hostile-keys"
ERASED = times(3, len(HOSTILE))
FETCHED = """async ([dataset, keys]) => {
  const { get, patch, erase, path, withQuery } = await import("/assets/api.js");
  const told = [];
  for (const individual of keys) {
    const address = withQuery(path("datasets", dataset, "individual"), { individual });
    const account = await get(address);
    const report = await patch(address, { age: 41 });
    await erase(address);
    told.push([account.key, report.rows]);
  }
  return told;
}"""


@pytest.fixture
def crowd(site: Site) -> Iterator[httpx.Client]:
    """A curator of a dataset with a person of each hostile key, and one more."""
    registration = {"name": DATASET, "guarantee": {"rho": "1"}, "capacity": 100, "tables": {"people": PEOPLE}}
    rows = "\n".join(
        json.dumps({"person_id": key, "country": "NO", "age": 40, "member": True}) for key in (*HOSTILE, "ann")
    )
    with site.client("curator") as curator:
        curator.post("/v1/datasets", json=registration).raise_for_status()
        address = f"/v1/datasets/{DATASET}/tables/people/rows"
        sent = {"Content-Type": "application/x-ndjson"}
        curator.post(address, content=rows.encode(), headers=sent).raise_for_status()
        yield curator
        curator.delete(f"/v1/datasets/{DATASET}").raise_for_status()


def left(curator: httpx.Client) -> int:
    """The individuals that the dataset still has."""
    number: int = curator.get(f"/v1/datasets/{DATASET}").json()["individuals"]
    return number


@pytest.mark.browser
def test_a_page_reads_corrects_and_erases_the_individual_of_each_key(visit: Visit, crowd: httpx.Client) -> None:
    """By the functions that the page itself calls; all others stay."""
    told = visit.enter("curator").evaluate(FETCHED, [DATASET, list(HOSTILE)])
    assert told == [[key, 1] for key in HOSTILE]
    assert left(crowd) == 1


@pytest.mark.browser
def test_a_curator_erases_an_individual_called_two_dots(visit: Visit, crowd: httpx.Client) -> None:
    """Through the form: the dataset and all others stay."""
    visit.enter("curator", f"/curator/{DATASET}/people")
    visit.page.get_by_label("Key of the individual").fill("..")
    visit.page.get_by_role("button", name="Show the account").click()
    visit.page.get_by_text("Erase this individual").click()
    visit.page.get_by_label("Type the key .. to confirm").fill("..")
    visit.page.get_by_role("button", name="Erase", exact=True).click()
    visit.page.get_by_text("Individual .. is erased.").wait_for()
    assert left(crowd) == len(HOSTILE)


def test_curl_reads_the_individual_of_each_key_and_erases_some(site: Site, crowd: httpx.Client) -> None:
    """Or, on a machine without curl, httpx with the same addresses."""
    addresses = [address_of(key, DATASET) for key in HOSTILE]
    assert [json.loads(each)["key"] for each in _sent(site, "GET", addresses)] == list(HOSTILE)
    erased = addresses[:: len(addresses) // ERASED]
    assert _sent(site, "DELETE", erased) == [b""] * len(erased)
    assert left(crowd) == len(HOSTILE) + 1 - len(erased)


def _sent(site: Site, method: str, addresses: list[str]) -> list[bytes]:
    """The bodies of the responses."""
    curl = shutil.which("curl")
    if curl is None:
        with site.client("curator") as curator:
            return [curator.request(method, address).content for address in addresses]
    header = f'header = "Authorization: Bearer {site.keys["curator"]}"'
    command = [curl, "--silent", "--noproxy", "*", "--max-time", "60", "--request", method, "--config", "-"]
    command += ["--write-out", "\n", *(f"{site.url}{address}" for address in addresses)]
    done = subprocess.run(command, input=header.encode(), capture_output=True, check=True)
    return done.stdout.split(b"\n")[:-1]
