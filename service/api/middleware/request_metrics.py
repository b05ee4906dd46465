"""Requests are counted by the template of their path: a path itself may hold the key of an individual."""

from starlette.types import Scope

from service.workflows.ports.telemetry import Telemetry

UNMATCHED = "unmatched"
FORWARDED = "forwarded"
GREETING = "greeting"
COUNTED_AS = "counted_as"
"""Where a layer says under which name a request counts that no route answers."""


class RequestCount:
    """One request in the telemetry's books, from now until it ends; one that ends without a response has status 0."""

    __slots__ = ("_is_open", "_scope", "_telemetry", "status")

    def __init__(self, scope: Scope, telemetry: Telemetry) -> None:
        self._scope, self._telemetry = scope, telemetry
        self.status, self._is_open = 0, True
        telemetry.request_began()

    def end(self) -> None:
        """Tell of its route and status, once: a response may be complete before its request's work is."""
        if self._is_open:
            self._is_open = False
            self._telemetry.request_ended(_route_of(self._scope), self.status)


def _route_of(scope: Scope) -> str:
    """The name that a layer gave, else `METHOD /template` of a route of ours; everything else is one name."""
    named = scope["state"].get(COUNTED_AS)
    if named is not None:
        return str(named)
    route = scope.get("route")
    template, methods = getattr(route, "path", None), getattr(route, "methods", None) or ()
    return f"{scope['method']} {template}" if template and scope["method"] in methods else UNMATCHED
