"""Packages of the service that the client runs in its own process, without a server or a store.

In a clone they lie beside the client, as `service`. A built wheel has a copy of them in this folder, where `service` is
renamed to `sparing._rooms` (hatch_build.py). The module `estimates` names those that every client uses, `fake` those of
`sparing.testing`, and `research` those of `sparing.research`. All other modules import them through these three.
`estimates` needs no further package; `fake` and `research` need those of their extras.
"""
