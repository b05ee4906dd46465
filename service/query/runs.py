"""The number of rows that are worked on at a time, and the longest time of a query: public numbers."""

BLOCK_ROWS = 2**16
"""Individuals, a page of slots, that are looked at at a time, and worked on at a time where each has one entry.

They stay in cache from the condition to the debit, and the calls of one block cost less than a tenth of its arithmetic.
"""
RUN_ENTRIES = 2**18
"""Entries of vectors, rows times the most entries of a row, that are worked on at a time."""
MULTIPLIED_MAX = 10**10
"""Products of two numbers, of features with errors, parameters or each other, in one query: some seconds."""


def rows_in_run(*, entries: int, is_of_events: bool) -> int:
    """The chosen rows of at most `entries` entries that are made into vectors at a time, or one individual's if more.

    Public, so that the working memory has a public bound (`service.query.working_memory`).
    """
    return BLOCK_ROWS if entries == 1 and not is_of_events else max(RUN_ENTRIES // entries, 1)
