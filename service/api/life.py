"""The end of a service's life: it says that it is leaving, refuses what is new, and finishes what it has."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.problems import Refusal, request_id_of, response_of

PROBES = frozenset({"/livez", "/readyz"})


class Life:
    """Whether new requests are taken. Set from a signal handler, read by every request."""

    draining = False

    def drain(self) -> None:
        """From now on refuse what is new; there is no way back."""
        self.draining = True


class Draining:
    """Refuses new requests while the service is leaving, and ends every connection with its response.

    What was accepted before is answered. The operator's probes are answered to the end.
    """

    def __init__(self, app: ASGIApp, *, life: Life) -> None:
        self.app = app
        self.life = life

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what came in time."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_last(message: Message) -> None:
            if message["type"] == "http.response.start" and self.life.draining:
                MutableHeaders(scope=message)["Connection"] = "close"
            await send(message)

        if self.life.draining and scope["path"] not in PROBES:
            await response_of(draining(), request_id_of(scope))(scope, receive, send_last)
        else:
            await self.app(scope, receive, send_last)


def draining() -> Refusal:
    """The answer to everything that comes too late."""
    title = "The service is shutting down; retry with the same Idempotency-Key."
    return Refusal(503, "draining", title, headers={"Retry-After": "1"})
