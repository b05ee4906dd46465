"""The documents that are sent for queries in each of their forms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sparing._answers import Answer
from sparing._average_answers import LABELLED_MAX
from sparing._averages import is_average
from sparing._query import QueryRequest, question_json


class WrittenQuery(Protocol):
    """A query written step by step or in SQL, made from `client.dataset(name)`."""

    @property
    def dataset(self) -> str:
        """The name of the queried dataset."""

    @property
    def json(self) -> dict[str, object]:
        """The document that is sent."""


@dataclass(frozen=True, slots=True)
class Document:
    """A query's document, and the name of its dataset."""

    dataset: str
    json: dict[str, object]

    def answered(self, answer: Answer) -> Answer:
        """The answer to this document. Raises ValueError if averages were asked for and are missing."""
        items: Any = self.json["select"]
        if any(map(is_average, items)) and not answer.averages and answer.dimension <= LABELLED_MAX:
            raise ValueError("it has none of the averages that were asked for")
        return answer


def checked(question: QueryRequest | WrittenQuery) -> Document:
    """The document of a query. Raises the exceptions of `question_json`."""
    if isinstance(question, Mapping):
        document = question_json(question)
        return Document(question["dataset"], document)
    if isinstance(question, str):
        raise TypeError("a text is asked by client.sql, and made a query by client.dataset(name).sql(text)")
    return Document(question.dataset, question.json)
