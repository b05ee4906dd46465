"""The cache's adapter: sealed values on a shelf, which is a Redis or, in one process, a dictionary."""
