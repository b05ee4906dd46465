"""The words for a fault of a database or a cache, without any part of the address under which it was asked.

Libraries quote the address in their errors, and may take a part of a password for a host. An error that quotes a part
of the address is replaced by words of ours, or left out. Any other error is passed on.
"""

import re
from typing import Final
from urllib.parse import unquote

_WORDS: Final = {
    "connection refused": "connection refused",
    "translate host name": "the name of its host has no address",
    "name or service not known": "the name of its host has no address",
    "name resolution": "the name of its host has no address",
    "nodename nor servname": "the name of its host has no address",
    "no route to host": "no route to its host",
    "network is unreachable": "its network is unreachable",
    "password authentication failed": "password authentication failed",
    "no password supplied": "it wants a password",
    "no pg_hba.conf entry": "it takes no connections of this role from this machine",
    "wrongpass": "password authentication failed",
    "invalid username-password": "password authentication failed",
    "noauth": "it wants a password",
    "too many clients": "it has no connection left",
    "remaining connection slots": "it has no connection left",
    "max number of clients": "it has no connection left",
    "starting up": "it is starting up",
    "shutting down": "it is shutting down",
    "busy loading": "it is starting up",
    "certificate": "its certificate is not accepted",
    "ssl": "no encrypted connection is agreed upon",
    "no such file or directory": "its socket is not there",
    "permission denied": "permission denied",
    "no space left on device": "no space left on the device",
    "server closed the connection": "it closed the connection",
    "connection closed by server": "it closed the connection",
    "timeout": "it does not answer in time",
    "timed out": "it does not answer in time",
}
_MISSING: Final = re.compile(r'(database|role) "[^"]*" does not exist', re.IGNORECASE)
_DELIMITERS: Final = re.compile(r"[^\w.-]+")
_LENGTH_MAX: Final = 500


def words_of(fault: Exception | str, address: str) -> str:
    """One line for the operator: an error of a library or the output of a program, without parts of this address."""
    text = " ".join(str(fault).split())
    lowered = text.casefold()
    if text and not _quotes(lowered, address.casefold()):
        return text[:_LENGTH_MAX]
    missing = _MISSING.search(text)
    if missing is not None:
        return f"the {missing[1].casefold()} of its address does not exist"
    known = next((words for sign, words in _WORDS.items() if sign in lowered), None)
    kind = "" if isinstance(fault, str) else f"{type(fault).__name__}: "
    return known or f"{kind}the error quotes the address, and is left out"


def _quotes(text: str, address: str) -> bool:
    """Tell whether the text quotes a piece of the address, the scheme excepted; delimiters separate the pieces."""
    _, _, rest = address.partition("://")
    return bool(_pieces(text) & (_pieces(rest) | _pieces(unquote(rest))))


def _pieces(text: str) -> set[str]:
    return {piece.strip(".-") for piece in re.split(_DELIMITERS, text)} - {""}
