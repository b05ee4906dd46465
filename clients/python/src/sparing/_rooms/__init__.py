"""Rooms of the service that the client runs in its own process: no server, and nothing of its stores.

In a clone they lie beside the client, as `service`. A built wheel has a copy of them in this folder, where `service` is
renamed to `sparing._rooms` (hatch_build.py). `estimates` names those of every client, `fake` those of `sparing.testing`
and `research` those of `sparing.research`, which import them by way of these modules alone: each needs the packages of
its own extra only, and `estimates` needs none.
"""
