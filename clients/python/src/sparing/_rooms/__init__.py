"""The service's own query language, engine and privacy core, which the fake service runs.

In a clone they lie beside the client, as `service`. A built wheel has a copy of them in this folder, where `service` is
renamed to `sparing._rooms` (hatch_build.py). Only `sparing.testing` imports them, and all of it by way of this module.
"""

from service.core.budget import budget_units, epsilon_of_units, mu_of_units
from service.core.charge import UNITS_PER_RHO, rho_of_units, units_down, worst_case_units
from service.core.noise import Entropy, rounded_gaussian
from service.core.release import answer
from service.engine.evaluate import contributions
from service.engine.memory import DatasetMemory
from service.query.calendar import days_of, seconds_of
from service.query.columns import Coding, coding_of
from service.query.language import Query, Sigma
from service.query.parse import parse_query
from service.query.plan import CountIndividuals, Plan, compile_query
from service.query.problems import QueryProblem
from service.query.schema import (
    BooleanColumn,
    BudgetColumn,
    CategoryColumn,
    Column,
    DateColumn,
    DatetimeColumn,
    EventsTable,
    IntegerColumn,
    Schema,
    Table,
)
from service.query.words import in_words

__all__ = [
    "UNITS_PER_RHO",
    "BooleanColumn",
    "BudgetColumn",
    "CategoryColumn",
    "Coding",
    "Column",
    "CountIndividuals",
    "DatasetMemory",
    "DateColumn",
    "DatetimeColumn",
    "Entropy",
    "EventsTable",
    "IntegerColumn",
    "Plan",
    "Query",
    "QueryProblem",
    "Schema",
    "Sigma",
    "Table",
    "answer",
    "budget_units",
    "coding_of",
    "compile_query",
    "contributions",
    "days_of",
    "epsilon_of_units",
    "in_words",
    "mu_of_units",
    "parse_query",
    "rho_of_units",
    "rounded_gaussian",
    "seconds_of",
    "units_down",
    "worst_case_units",
]
