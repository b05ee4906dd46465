"""Queries in each of their forms as what is sent, and what is made of the answer to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from sparing._answers import Answer
from sparing._average_answers import averaged
from sparing._averages import LinearQuery
from sparing._calls import Call
from sparing._dataset_replies import described
from sparing._models import Dataset
from sparing._query import QueryRequest, question_json
from sparing._requests import get, path


class WrittenQuery(Protocol):
    """A query written step by step or in SQL, as `client.dataset(name)` makes them."""

    @property
    def dataset(self) -> str:
        """The dataset that it is of."""

    @property
    def json(self) -> dict[str, object]:
        """The document that is sent, of a query without averages."""

    @property
    def has_averages(self) -> bool:
        """Tell whether its document follows from the declared bounds."""

    def as_linear(self, dataset: Dataset) -> LinearQuery:
        """The linear query behind one with averages."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document to send, and the averages of the answer to it, if there are any."""

    dataset: str
    json: dict[str, object]
    answered: Callable[[Answer], Answer] = lambda answer: answer


def checked(question: QueryRequest | WrittenQuery) -> Document | WrittenQuery:
    """The document of a query; one with averages as it is. Raises TypeError and ValueError as `question_json`."""
    if isinstance(question, Mapping):
        document = question_json(question)
        return Document(question["dataset"], document)
    if isinstance(question, str):
        raise TypeError("a text is asked by client.sql, and made a query by client.dataset(name).sql(text)")
    return question if question.has_averages else Document(question.dataset, question.json)


def documents_of(questions: Sequence[Document | WrittenQuery]) -> Call[list[Document]]:
    """The documents of queries of one dataset, whose schema is read once if there are averages."""
    found: list[Document] = []
    schema: Dataset | None = None
    for each in questions:
        if isinstance(each, Document):
            found.append(each)
            continue
        if schema is None:
            schema = yield from described(get(path("datasets", each.dataset)))
        query = each.as_linear(schema)
        found.append(Document(each.dataset, question_json(query.request), partial(averaged, query=query)))
    return found
