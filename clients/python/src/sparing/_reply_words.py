"""The words by which a client recognises the reply to its request: one that is random, which the reply repeats."""

import secrets
from typing import Final

import httpx

REPLY_TO: Final = "Sparing-Reply-To"


class ReplyWords:
    """Tells replies to a request from others, with what is known of the service: older ones repeat no word."""

    def __init__(self) -> None:
        self._are_repeated = False

    def drawn(self) -> dict[str, str]:
        """The header of one try."""
        return {REPLY_TO: secrets.token_hex(16)}

    def check(self, response: httpx.Response) -> None:
        """Raise RemoteProtocolError for a reply to another request, or to none, from a service that repeats words.

        A refusal may be without one: proxies write such by themselves.
        """
        word = response.headers.get(REPLY_TO)
        if word == response.request.headers[REPLY_TO]:
            self._are_repeated = True
        elif word is not None or (self._are_repeated and response.is_success):
            raise httpx.RemoteProtocolError("the reply is to another request", request=response.request)
