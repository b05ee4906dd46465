"""The service's own query language, engine and privacy core, which `sparing.testing` runs."""

from service.accounting.accountings import GAUSSIAN, Accounting, accounting_of
from service.accounting.monitor import Monitor, coefficients, monitor_of
from service.core.charge import UNITS_PER_RHO, rho_of_units, units_down, worst_case_units
from service.core.laws import Gaussian, Law
from service.core.noise import Entropy
from service.core.release import answer
from service.engine.evaluate import contributions
from service.engine.key_digests import SALT_BYTES, key_digests
from service.engine.memory import DatasetMemory
from service.engine.reduction import reduced
from service.engine.ticks import TickCounts
from service.query.asking import answerable, notes_of
from service.query.calendar import seconds_of, written_day_of
from service.query.columns import DIGEST, Coding, codings_of
from service.query.json_text import document_of
from service.query.keys import Key, compared
from service.query.language import Query
from service.query.noise_ast import Sigma
from service.query.parameters_ast import HashedParameters, SentNumbers, with_kept
from service.query.parse import parse_query, query_of
from service.query.plan import Plan
from service.query.problems import QueryProblem
from service.query.schema import (
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    DatetimeColumn,
    EventsTable,
    IntegerColumn,
    Schema,
    Table,
    VectorColumn,
)
from service.query.stated import answer_of, promise_of, shown_of
from service.query.suggestions import did_you_mean, no_dataset
from service.query.vector_columns import VectorCoding, vectors_of
from service.query.words import in_words

__all__ = [
    "DIGEST",
    "GAUSSIAN",
    "SALT_BYTES",
    "UNITS_PER_RHO",
    "Accounting",
    "BooleanColumn",
    "CategoryColumn",
    "Coding",
    "Column",
    "DatasetMemory",
    "DateColumn",
    "DatetimeColumn",
    "Entropy",
    "EventsTable",
    "Gaussian",
    "HashedParameters",
    "IntegerColumn",
    "Key",
    "Law",
    "Monitor",
    "Plan",
    "Query",
    "QueryProblem",
    "Schema",
    "SentNumbers",
    "Sigma",
    "Table",
    "TickCounts",
    "VectorCoding",
    "VectorColumn",
    "accounting_of",
    "answer",
    "answer_of",
    "answerable",
    "codings_of",
    "coefficients",
    "compared",
    "contributions",
    "did_you_mean",
    "document_of",
    "in_words",
    "key_digests",
    "monitor_of",
    "no_dataset",
    "notes_of",
    "parse_query",
    "promise_of",
    "query_of",
    "reduced",
    "rho_of_units",
    "seconds_of",
    "shown_of",
    "units_down",
    "vectors_of",
    "with_kept",
    "worst_case_units",
    "written_day_of",
]
