"""Rows on their way in: parsed, checked against the declared columns, and coded; all of an upload or nothing of it.

    RowsProblem (ValueError)   what is wrong, by row and column

Domains are declared and public. A number outside its bounds is clipped, a category outside its list becomes NULL, and
both are counted for the curator alone.

The `reader` is not imported here: its import takes fifty milliseconds because of pyarrow, and no start needs it.
"""

from service.engine.ingest.problems import PROBLEMS_MAX, ErrorCounts, ErrorGroup, Problems, RowError, RowsProblem
from service.engine.ingest.rows import USUAL_FORM, DecimalMark, Duplicates, FileForm, FirstRows, Keys, Rows

__all__ = [
    "PROBLEMS_MAX",
    "USUAL_FORM",
    "DecimalMark",
    "Duplicates",
    "ErrorCounts",
    "ErrorGroup",
    "FileForm",
    "FirstRows",
    "Keys",
    "Problems",
    "RowError",
    "Rows",
    "RowsProblem",
]
