"""The columns of one query, including those of every kind of value."""

from service.query.columns import QueryColumn
from service.query.expressions_ast import Own, Predict
from service.query.own_events import own_events_column
from service.query.predictions import prediction_column
from service.query.row_columns import RowColumns


class QueryColumns(RowColumns):
    """The columns that a query reads or calculates."""

    def predicted(self, node: Predict, field: str) -> QueryColumn:
        """The column of a model's predictions. Raises QueryProblem naming the field."""
        return prediction_column(node, self, field)

    def of_own_events(self, node: Own, field: str) -> QueryColumn:
        """The column of a count or sum over own events. Raises QueryProblem naming the field."""
        return own_events_column(node, self, QueryColumns, field)
