"""One thing to compute: as the JSON of a query has it, and as a plan has it.

Each kind of item is a module of `service.query.items`, with one class for the JSON and one for the plan. No other code
asks for the kind of an item: kinds differ by the facts and methods that stand here.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from operator import attrgetter
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from service.core.mechanisms import Mechanism
from service.query.columns import QueryColumn
from service.query.dataset_terms import DatasetTerms
from service.query.domains import Axis, Domain, Label
from service.query.extents import Extent
from service.query.group_keys import Group
from service.query.literals_ast import Keyed
from service.query.noise_ast import Noise
from service.query.product_plan import ProductPlan
from service.query.row_columns import RowColumns
from service.query.scale import Scale
from service.query.sparse_matrix import SparseMatrix

_ONE = Extent(low=1, high=1, step_log2=0, integral=True)


class ItemPlace(NamedTuple):
    """The place at which an item is compiled: its number in `select`, and what it may read there."""

    number: int
    columns: RowColumns
    groups: Sequence[Group]
    terms: DatasetTerms
    within: str = ""  # the item that it is a part of

    @property
    def field(self) -> str:
        """The item's name in a refusal."""
        return f"select[{self.number}]{self.within}"


class AskedPrecision(NamedTuple):
    """The precision that a query asks for: its noise, and the square of its one clip."""

    noise: Noise
    clip_squared: Fraction | None
    mechanism: Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanItem:
    """A compiled item: what one row adds, and the names of the coordinates. All of it is public."""

    has_one_norm: ClassVar[bool] = False
    """A row adds 1 at one coordinate, whatever the row holds."""
    is_once: ClassVar[bool] = False
    """An individual adds this item once to a group, however many rows it has in the group."""
    is_unit: ClassVar[bool] = False
    """A row adds 1."""
    is_scalar: ClassVar[bool] = True
    """The item has one coordinate in each group, which does not depend on the row."""
    has_own_scale: ClassVar[bool] = False
    """The item is alone in its query and gives the scale by `scaled`."""

    title: str  # what labels write
    size: int = 1  # how many coordinates it has in each group
    column: str | None = None  # the column whose code is its value, or leads on from its first coordinate
    domain: Domain | None = None  # the values that its coordinates are of
    matrix: SparseMatrix | None = None  # the entries of each value of the column
    product: ProductPlan | None = None  # what is summed where a row adds an outer product
    entries_of_row: int = 1  # at most
    room_units: int | None = None  # what an individual must have left to be counted; None where that is no condition

    @property
    def names(self) -> Sequence[tuple[str, ...]]:
        """The lists of names that labels repeat, those of features and of classes."""
        return ()

    def extent(self, columns: Mapping[str, QueryColumn]) -> Extent:  # noqa: ARG002 - one for each row
        """The values that one row may add, by the declared bounds."""
        return _ONE

    def labels(self) -> list[Label]:
        """The name of each coordinate of the item."""
        return [{"select": self.title}]

    def axis(self) -> Axis:
        """The item's coordinates in a few lines, without their title, place and number."""
        return {}

    def scaled(self, precision: AskedPrecision, terms: DatasetTerms) -> "tuple[Self, Scale]":  # noqa: ARG002 - of few
        """The item with its own scale. Raises QueryProblem naming the field; TypeError where there is no own scale."""
        raise TypeError(f"{self.title} has the scale of its query")

    def refuse_unpayable(self, worst_case_units: int, budget_units: int) -> None:
        """Raise QueryProblem where `room_units` may be too little to pay for a query of this worst case."""

    def of_all(self) -> Self:
        """Return the item for all individuals, whatever they have left."""
        return self


InputKind = Literal["numbers", "numeric", "countable", "share"]
"""The input for a member: an integer or real column; also a boolean; a category or boolean; a number from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A member of an item's body, for which a page has an input."""

    kind: InputKind
    label: str = ""
    hint: str = ""
    value: float | None = None  # to begin with


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """An item as a page offers it: words, to be followed by the name of its column, and the inputs of its members."""

    words: str
    inputs: Mapping[str, Input] = field(default_factory=dict)
    table: Literal["individuals", "events"] | None = None  # the only kind of table that it is offered for


class Item(Keyed):
    """One object of `select`, as the JSON on the wire reads it."""

    FORM: ClassVar[Form | None] = None
    """The item as a page offers it; None for an item that no page offers."""
    stands_alone: ClassVar[bool] = False
    """The item is alone in `select`, is about the table of individuals, and its sum is not reduced.

    Only for such an item may `may_reuse` be false or `has_own_noise` true.
    """
    admits_groups: ClassVar[bool] = True
    may_reuse: ClassVar[bool] = True
    """A released answer will do, since its number does not depend on what is left of budgets."""
    has_own_noise: ClassVar[bool] = False
    """The dataset decides about noise and individuals, so that a query states nothing beside the item."""
    is_composite: ClassVar[bool] = False
    """The item is worked out from linear items, which are compiled in its place."""
    one_number: ClassVar[Literal["always", "of individuals", "no"]] = "no"
    """The tables in which each individual has one number in the item, so that Laplace noise can be priced."""

    @classmethod
    def form_document(cls) -> dict[str, Any] | None:
        """The form, and the facts that a page needs beside it; None for an item without a form."""
        if cls.FORM is None:
            return None
        facts = ("stands_alone", "may_reuse", "is_composite", "one_number")
        return {"kind": cls.KIND, **asdict(cls.FORM), **{fact: getattr(cls, fact) for fact in facts}}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema, with the form document under `x-form`."""
        found = handler(core_schema)
        if (form := cls.form_document()) is not None:
            handler.resolve_ref_schema(found)["x-form"] = form
        return found

    @classmethod
    def words(cls, body: Any) -> str:  # noqa: ANN401, ARG003 - JSON, and nothing of it
        """The words for the item, from the JSON value under its key."""
        return cls.KIND

    @classmethod
    def sentence(cls, body: Any, table: str) -> str:  # noqa: ANN401 - as above
        """The words for a query of the item alone."""
        return f"{cls.words(body)} in {table}"

    @abstractmethod
    def compiled(self, place: ItemPlace) -> Sequence[PlanItem]:
        """The item as one item or several of a plan. Raises QueryProblem naming the field."""


is_composite: Final = attrgetter("is_composite")
"""Tells whether an item is worked out from linear items."""


def words_of(document: Mapping[str, Any], items: Sequence[type[Item]]) -> str:
    """The words for an item of one of these kinds, as read from JSON."""
    [(kind, body)] = document.items()
    return next(item.words(body) for item in items if kind == item.KIND)
