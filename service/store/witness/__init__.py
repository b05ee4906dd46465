"""Adapters of the port Witness: a file, a Redis beside the file, and the combination of both."""
