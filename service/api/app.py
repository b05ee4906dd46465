"""The whole onion at a glance: request id, headers, incidents, limits; then refusals; then guard, route, workflow."""

from typing import Protocol

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.middleware import Middleware

from service.api import analyst, auditor, catalogue, curator, individual, ops
from service.api.drills import DrilledAnswers
from service.api.layers import Incidents, RequestIds, RequestLimits, ResponseHeaders
from service.api.openapi import REFUSED, describe
from service.api.problems import exception_handlers
from service.failpoints import armed
from service.workflows.house import House

BODY_BYTES_MAX = 256 * 1024

# FastAPI's telemetry would record the text of exceptions wherever an environment variable switches it on.
SILENT: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


class ApiSettings(Protocol):
    """What the edge needs to be told."""

    @property
    def upload_bytes_max(self) -> int:
        """The largest upload that is taken, in bytes."""


def create_app(house: House, settings: ApiSettings) -> FastAPI:
    """The application that serves one house."""
    app = FastAPI(
        title="Sparing",
        summary="Answers linear queries about people and spends each person's privacy sparingly.",
        version="1",
        docs_url=None,  # both pages would load their script from somebody else's server
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
        strict_content_type=False,
        telemetry=SILENT,
        exception_handlers=exception_handlers(),
        responses=REFUSED,
        middleware=[
            *([Middleware(DrilledAnswers)] if armed() else []),
            Middleware(RequestIds),
            Middleware(ResponseHeaders),
            Middleware(Incidents),
            Middleware(
                RequestLimits, body_bytes_max=BODY_BYTES_MAX, bodies={curator.UPLOAD_PATH: settings.upload_bytes_max}
            ),
        ],
    )
    app.state.house = house
    app.include_router(ops.router)
    app.include_router(catalogue.router)  # curators and analysts
    app.include_router(curator.house_router)  # curators that are bound to no dataset
    app.include_router(curator.router)
    app.include_router(analyst.router)
    app.include_router(individual.router)
    app.include_router(auditor.router)  # auditors and curators
    describe(app)
    return app
