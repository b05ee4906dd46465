"""The type of the setting `SPARING_RAY_ADDRESS`: where a Ray cluster is joined."""

from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator

RAY: Final = "The host:port of a running Ray cluster that holds the shards instead of processes of this machine."


def _address(text: str) -> str:
    try:
        parts = urlsplit(f"//{text}")
        is_address = bool(parts.hostname and parts.port and parts.netloc == text and parts.username is None)
    except ValueError:
        is_address = False
    if not is_address:
        raise ValueError("must be host:port")
    return text


RayAddress = Annotated[str, AfterValidator(_address)]
