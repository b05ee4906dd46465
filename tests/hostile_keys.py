"""Keys of individuals that an address easily turns into another address."""

from typing import Final
from urllib.parse import quote

DOTS: Final = (".", "..", "../x", "..\\", "a/b", "/", "//", "%2e%2e", "%", "%2F")
MARKS: Final = ("a\nb", "a\tb", "?", "#", "&", "a&individual=b", "+", "a+b", ";", "=", "\\", '"', "<b>", "a b")
LETTERS: Final = ("\N{PARTY POPPER}", "\u00e9", "e\u0301", "\ufffd", "x" * 256, "keys")
HOSTILE: Final = (*DOTS, *MARKS, *LETTERS)


def address_of(individual: str, dataset: str) -> str:
    """The address of one individual, with every byte of its key escaped."""
    escaped = "".join(f"%{byte:02x}" for byte in individual.encode())
    return f"/v1/datasets/{dataset}/individual?individual={escaped}"


def addresses_of(individual: str, dataset: str) -> tuple[str, ...]:
    """The address as other programs write it: everything escaped, the least of it, and as forms do."""
    path = f"/v1/datasets/{dataset}/individual?individual="
    least = quote(individual, safe="/?;=:@!$'()*,.~")
    return address_of(individual, dataset), path + least, path + least.replace("%20", "+")
