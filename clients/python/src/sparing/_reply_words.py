"""Random words, one for each try, by which a client recognises the reply to its request: the reply repeats the word."""

import secrets
from typing import Final

import httpx

REPLY_TO: Final = "Sparing-Reply-To"


class ReplyWords:
    """A check that replies belong to their requests. It learns from replies whether the service repeats words."""

    def __init__(self) -> None:
        self._are_repeated = False

    def drawn(self) -> dict[str, str]:
        """The header with the random word of one try."""
        return {REPLY_TO: secrets.token_hex(16)}

    def check(self, response: httpx.Response) -> None:
        """Raise RemoteProtocolError for a reply with another word, or without a word if the service repeats words.

        A refusal without a word is accepted, as proxies write refusals by themselves.
        """
        word = response.headers.get(REPLY_TO)
        if word == response.request.headers[REPLY_TO]:
            self._are_repeated = True
        elif word is not None or (self._are_repeated and response.is_success):
            raise httpx.RemoteProtocolError("the reply is to another request", request=response.request)
