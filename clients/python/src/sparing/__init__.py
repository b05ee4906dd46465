"""The Python client of Sparing, a service that answers queries about people and spends their privacy sparingly.

from sparing import Client, col, count

with Client() as client:  # SPARING_URL and SPARING_API_KEY
    answer = client.queries.ask(dataset="web-visits", select=count(), where=col("age") >= 40, sigma=20)
    print(f"{answer.value:.0f} ± {answer.half_width_95:.0f}")
"""

from sparing._answers import Answer, Average, Interval, Ranked
from sparing._async_client import AsyncClient
from sparing._averages import difference, mean, quantile, ratio, stddev, variance
from sparing._bins import bin_levels
from sparing._builder import AsyncDatasetQueries, AsyncQueryBuilder, DatasetQueries, QueryBuilder
from sparing._chain import Chain
from sparing._client import Client
from sparing._columns import ColumnsError
from sparing._combine import Combined, combine, missing_sigma
from sparing._constants import MAX_RETRIES, TIMEOUT_S
from sparing._documents import WrittenQuery
from sparing._dummy import dummy_data
from sparing._errors import (
    APIConnectionError,
    APIReplyError,
    APIStatusError,
    APITimeoutError,
    AuthenticationError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitedError,
    SparingError,
    UnavailableError,
    Wrong,
)
from sparing._estimates import Estimate, Ratio, ratios, variances
from sparing._exhausted import ExhaustedCount
from sparing._expressions import (
    Column,
    Condition,
    Group,
    Item,
    Value,
    active,
    col,
    count,
    count_individuals,
    exhausted,
    histogram,
    linear,
    sum_,
)
from sparing._histograms import ConsistentHistogram, Quantile, consistent_histogram
from sparing._infer import infer_schema
from sparing._learning_items import Feature, feature, fold, gradient, moments, one_hot, own, predict, scaled, vector
from sparing._margins import ConsistentTables, consistent_tables
from sparing._models import (
    ActiveShare,
    ActRow,
    Alarm,
    Allowance,
    AnalystRow,
    Asker,
    BudgetRow,
    BudgetSummary,
    Dataset,
    DatasetRow,
    DroppedAfter,
    Forecast,
    Guarantee,
    IndividualBudget,
    IndividualKey,
    LedgerRow,
    Preview,
    PrincipalKey,
    PrincipalRow,
    PublicCost,
    Receipt,
    ReleaseRow,
    RunDivergence,
    ShareBin,
    SummaryHistory,
    SummaryPoint,
    TypicalQuery,
    UploadReport,
    Verification,
)
from sparing._nonnegative import nonnegative
from sparing._normal import half_width
from sparing._query import QueryRequest
from sparing._sql import SQLError
from sparing._version import __version__
from sparing.dbapi import connect

__all__ = [
    "MAX_RETRIES",
    "TIMEOUT_S",
    "APIConnectionError",
    "APIReplyError",
    "APIStatusError",
    "APITimeoutError",
    "ActRow",
    "ActiveShare",
    "Alarm",
    "Allowance",
    "AnalystRow",
    "Answer",
    "Asker",
    "AsyncClient",
    "AsyncDatasetQueries",
    "AsyncQueryBuilder",
    "AuthenticationError",
    "Average",
    "BudgetRow",
    "BudgetSummary",
    "Chain",
    "Client",
    "Column",
    "ColumnsError",
    "Combined",
    "Condition",
    "ConflictError",
    "ConsistentHistogram",
    "ConsistentTables",
    "Dataset",
    "DatasetQueries",
    "DatasetRow",
    "DroppedAfter",
    "Estimate",
    "ExhaustedCount",
    "Feature",
    "Forecast",
    "Group",
    "Guarantee",
    "IndividualBudget",
    "IndividualKey",
    "Interval",
    "InvalidRequestError",
    "Item",
    "LedgerRow",
    "NotFoundError",
    "PermissionDeniedError",
    "Preview",
    "PrincipalKey",
    "PrincipalRow",
    "PublicCost",
    "Quantile",
    "QueryBuilder",
    "QueryRequest",
    "Ranked",
    "RateLimitedError",
    "Ratio",
    "Receipt",
    "ReleaseRow",
    "RunDivergence",
    "SQLError",
    "ShareBin",
    "SparingError",
    "SummaryHistory",
    "SummaryPoint",
    "TypicalQuery",
    "UnavailableError",
    "UploadReport",
    "Value",
    "Verification",
    "WrittenQuery",
    "Wrong",
    "__version__",
    "active",
    "bin_levels",
    "col",
    "combine",
    "connect",
    "consistent_histogram",
    "consistent_tables",
    "count",
    "count_individuals",
    "difference",
    "dummy_data",
    "exhausted",
    "feature",
    "fold",
    "gradient",
    "half_width",
    "histogram",
    "infer_schema",
    "linear",
    "mean",
    "missing_sigma",
    "moments",
    "nonnegative",
    "one_hot",
    "own",
    "predict",
    "quantile",
    "ratio",
    "ratios",
    "scaled",
    "stddev",
    "sum_",
    "variance",
    "variances",
    "vector",
]

# Tracebacks and `repr` name the module an object is imported from, not the one that defines it.
for _name in __all__:
    if getattr(globals()[_name], "__module__", "").startswith("sparing."):
        globals()[_name].__module__ = "sparing"
del _name
