"""Rows on their way in: parsed, checked against the declared columns, and coded; all of an upload or nothing of it.

    RowsProblem (ValueError)   what is wrong, by row and column

Domains are declared and public. A number outside its bounds is clipped, a category outside its list becomes NULL, and
both are counted for the curator alone.
"""

from service.engine.ingest.problems import PROBLEMS_MAX, RowError, RowsProblem
from service.engine.ingest.reader import CONTENT_TYPES, ROWS_MAX, Rows, read_rows

__all__ = ["CONTENT_TYPES", "PROBLEMS_MAX", "ROWS_MAX", "RowError", "Rows", "RowsProblem", "read_rows"]
