"""The layer that counts requests, by the template of their path: a path itself may hold the key of an individual."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.workflows.telemetry import Telemetry

UNMATCHED = "unmatched"


class RequestCounts:
    """Tells telemetry of every request: that it began, and its route and status when it has ended."""

    def __init__(self, app: ASGIApp, *, telemetry: Telemetry) -> None:
        self.app = app
        self.telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count it in, and out when its response has been sent: late work may go on after that (`leaving.Deadline`).

        A request that ends without a response counts as status 0.
        """
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, is_in = 0, True

        def leave() -> None:
            nonlocal is_in
            if is_in:
                is_in = False
                self.telemetry.request_ended(_route_of(scope), status)

        async def send_seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                leave()

        self.telemetry.request_began()
        try:
            await self.app(scope, receive, send_seen)
        finally:
            leave()


def _route_of(scope: Scope) -> str:
    """`METHOD /template` of a route of ours; whatever else somebody asked for is one name."""
    route = scope.get("route")
    template, methods = getattr(route, "path", None), getattr(route, "methods", None) or ()
    return f"{scope['method']} {template}" if template and scope["method"] in methods else UNMATCHED
