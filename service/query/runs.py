"""The number of rows that are worked on at a time, and the longest time of a query: public numbers."""

BLOCK_ROWS = 2**16
"""The individuals, a page of slots, that are looked at at once. Where each has one entry, all are worked on at once.

They stay in cache from the condition to the debit. The calls for one block cost less than a tenth of its arithmetic.
"""
RUN_ENTRIES = 2**18
"""The entries of vectors that are worked on at once: rows times the most entries of a row."""
MULTIPLIED_MAX = 10**10
"""The most products of two numbers in one query, of features with errors, parameters or each other: some seconds."""


def rows_in_run(*, entries: int, is_of_events: bool) -> int:
    """The number of chosen rows, of at most `entries` entries each, that are made into vectors at once.

    An individual with more rows has a run of its own, which is worked on part by part. The number is public, so that
    the working memory has a public bound (`service.query.working_memory`).
    """
    return BLOCK_ROWS if entries == 1 and not is_of_events else max(RUN_ENTRIES // entries, 1)
