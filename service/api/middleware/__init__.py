"""ASGI middleware around the router: admission of requests, release slots, deadlines, limits, drain."""
