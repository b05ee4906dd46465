"""The application: all middleware, from the outermost layer to the innermost; within it guard, route, workflow.

turns                    a request begins when it is its principal's turn
request context          request id and headers on every response; counts; 503 while draining
forwarding               requests about one dataset go to the process that owns it, if datasets are shared
release slots            responses to analysts, individuals and auditors are held until their instant
fallback                 503 for a request that takes too long, 500 for an unexpected error
limits                   bounds on the size of a request
fast path                queries are answered before the framework's own routing
"""

from collections import Counter
from dataclasses import dataclass, field

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.middleware import Middleware

from service.api.forwarding.middleware import Forwarding
from service.api.middleware.chaos import ChaosMiddleware
from service.api.middleware.in_turn import InTurn
from service.api.middleware.release_clock import ReleaseClock, system_clock
from service.api.middleware.release_slots import ReleaseSlots, Slots
from service.api.middleware.request_context import DrainState, RequestContext
from service.api.middleware.request_limits import Fallback, RequestLimits
from service.api.openapi import describe
from service.api.openapi_errors import REFUSED
from service.api.places import PlaceBounds, PlacesOfLoops
from service.api.problems import exception_handlers
from service.api.query_bodies import NPZ_BYTES_MAX
from service.api.query_requests import FastPath, FastRoute
from service.api.routes import (
    analyst,
    auditor,
    curator,
    datasets,
    guide,
    health,
    individual,
    overview,
    pages,
    provider_sign_in,
    session,
)
from service.failpoints import armed
from service.ledger.ports.telemetry import NULL_TELEMETRY, Telemetry
from service.workflows.replica import Replica

BODY_BYTES_MAX = 256 * 1024
KEYS_BYTES_MAX = 4 * 2**20
"""Room for the keys of a hundred thousand individuals, each named by a UUID; longer names take two requests."""
LONG_PATHS = [curator.UPLOAD_PATH, curator.PREVIEW_PATH, overview.EVENTS_PATH, overview.EXPORT_PATH]
"""Uploads, streams of events and exports of a curator take as long as they need."""
ROUTERS = (
    analyst.hot_router,
    analyst.router,
    health.router,
    datasets.router,  # curators and analysts
    curator.all_datasets_router,  # curators that are bound to no dataset
    curator.router,
    overview.router,
    individual.router,
    auditor.router,  # auditors and curators
    session.router,
    provider_sign_in.router,
    pages.router,
    guide.router,
)
"""All routes, in the order in which they are tried."""
FORWARDED_FOR_S = 1.0
"""How many seconds beyond the owner's deadline a forwarded request may take, so that the owner answers first."""

# FastAPI's telemetry would record the text of exceptions wherever an environment variable switches it on.
NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How the HTTP layers treat time, and their telemetry. By default nothing is held and nothing is reported."""

    slots: Slots | None = None
    clock: ReleaseClock | None = None
    deadline_s: float = 30.0
    drain_state: DrainState = field(default_factory=DrainState)
    places: PlaceBounds = field(default_factory=PlaceBounds)
    telemetry: Telemetry = NULL_TELEMETRY


def create_app(replica: Replica, *, upload_bytes_max: int, options: HttpOptions | None = None) -> FastAPI:
    """The application that serves one replica, and takes uploads of up to `upload_bytes_max`."""
    options = options or HttpOptions()
    app = FastAPI(
        title="Sparing",
        summary="Answers linear queries about people and spends each person's privacy sparingly.",
        version="1",
        openapi_url=None,  # the route dumps it anew for each request (`service.api.routes.pages`)
        docs_url=None,  # both pages would load their script from a third party's server
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
        strict_content_type=False,
        telemetry=NO_TELEMETRY,
        exception_handlers=exception_handlers(),
        responses=REFUSED,
        middleware=[
            *([Middleware(ChaosMiddleware)] if armed() else []),
            Middleware(InTurn),
            Middleware(RequestContext, drain_state=options.drain_state, telemetry=options.telemetry),
            *_forwarded(replica, options),
            *_held(replica, options),
            Middleware(Fallback, deadline_s=options.deadline_s, exempt=LONG_PATHS),
            Middleware(
                RequestLimits,
                body_bytes_max=BODY_BYTES_MAX,
                npz_bytes_max=NPZ_BYTES_MAX,
                bodies={
                    curator.UPLOAD_PATH: upload_bytes_max,
                    curator.PREVIEW_PATH: upload_bytes_max,
                    curator.KEYS_PATH: KEYS_BYTES_MAX,
                },
            ),
            Middleware(FastPath, routes=[route for route in analyst.hot_router.routes if isinstance(route, FastRoute)]),
        ],
    )
    app.state.replica = replica
    app.state.places = PlacesOfLoops(options.places)
    app.state.streams = Counter()
    app.state.upload_bytes_max = upload_bytes_max
    app.state.drain_state = options.drain_state
    for router in ROUTERS:
        app.include_router(router)
    describe(app)
    return app


def _forwarded(replica: Replica, options: HttpOptions) -> list[Middleware]:
    """Forwarding, inside a fallback for this process; the inner fallback runs at the owner."""
    if replica.ownership is None:
        return []
    return [
        Middleware(Fallback, deadline_s=options.deadline_s + FORWARDED_FOR_S, exempt=LONG_PATHS),
        Middleware(Forwarding, replica=replica, ownership=replica.ownership, telemetry=options.telemetry),
    ]


def _held(replica: Replica, options: HttpOptions) -> list[Middleware]:
    """The layer of release slots, unless they are switched off."""
    if options.slots is None:
        return []

    def free_from_ns(instant_ns: int) -> int:
        scheduler = replica.admission.scheduler
        return instant_ns if scheduler is None else scheduler.free_from_ns(instant_ns)

    clock = options.clock or system_clock()
    return [
        Middleware(
            ReleaseSlots, slots=options.slots, clock=clock, telemetry=options.telemetry, free_from_ns=free_from_ns
        )
    ]
