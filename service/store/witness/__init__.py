"""Adapters of the port Witness: a file, a Redis beside it, and their combination."""
