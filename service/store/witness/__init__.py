"""Adapters of the port Witness: a file, a Redis beside it, their combination, and a twin in memory."""
