"""The load of a page: its addresses, and the bytes of each as they are sent."""

import httpx
from playwright.sync_api import Page

NAMES = "performance.getEntriesByType('resource').map(each => each.name)"


def loaded_by(page: Page) -> list[str]:
    """The addresses that the page has loaded from."""
    names: list[str] = page.evaluate(NAMES)
    return names


def sizes_of(addresses: list[str]) -> dict[str, int]:
    """The bytes of each address as they are sent; none is sent a second time to a browser that has it."""
    sizes = {}
    with httpx.Client(headers={"Accept-Encoding": "gzip"}) as client:
        for name in addresses:
            with client.stream("GET", name) as response:
                sizes[name] = sum(len(chunk) for chunk in response.iter_raw())
            again = client.get(name, headers={"If-None-Match": response.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
    return sizes
