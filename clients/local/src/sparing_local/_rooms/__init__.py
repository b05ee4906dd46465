"""The service's core, which a device uses through the module `device` alone.

In a clone the core is in `service`. A built wheel has a copy of it in this folder, in which `service` is renamed to
`sparing_local._rooms` (hatch_build.py of the Python client).
"""
