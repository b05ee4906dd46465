"""Forwarding of a request to the process that owns its dataset."""
