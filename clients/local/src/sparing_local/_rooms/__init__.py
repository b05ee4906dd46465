"""The service's core, which a device runs by way of `device` alone.

In a clone the core lies in `service`. A built wheel has a copy of it in this folder, where `service` is renamed to
`sparing_local._rooms` (hatch_build.py of the Python client).
"""
