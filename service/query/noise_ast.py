"""The precision that a query asks for, and the bound on one individual, as the JSON on the wire reads them."""

from abc import abstractmethod
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Discriminator, Field, Strict, Tag

from service.query.literals_ast import NOT_EMPTY, ByKey, Closed, Empty, Keyed, count_kind
from service.query.phrases import Node, number_text, numbers_text
from service.query.schema import ROWS_PER_INDIVIDUAL_MAX, doc, optional

SELECT_MAX = 64
MAGNITUDE_MAX = 1e100  # of a noise parameter: powers of two within reach of it scale without overflow
CLIP_MIN, CLIP_MAX = 1e-30, 1e30
Positive = Annotated[float, Field(gt=0, le=MAGNITUDE_MAX)]
Clip = Annotated[float, Field(ge=CLIP_MIN, le=CLIP_MAX)]
ByItem = (Strict(strict=False), Field(fail_fast=True, max_length=SELECT_MAX), NOT_EMPTY, Tag("(several)"))
"""The constraints on a list with one number for each select item."""
Positives = Annotated[
    Annotated[Positive, Tag("(one)")] | Annotated[tuple[Positive, ...], *ByItem], Discriminator(count_kind)
]
"""One number for all select items, or a list with one for each."""
Clips = Annotated[Annotated[Clip, Tag("(one)")] | Annotated[tuple[Clip, ...], *ByItem], Discriminator(count_kind)]


class PerIndividual(Closed):
    """One individual's vector: of L2 norm at most `l2_clip`, by default the natural bound of the query.

    With `rows`, an individual of which n selected rows are more counts as one with `rows`: each has `rows / n`.
    """

    l2_clip: Annotated[
        Clips | None,
        doc(
            "The longest vector, in the query's unit; a longer one is shortened. Left out, the natural bound. A list"
            " bounds each select item by itself."
        ),
    ] = None
    rows: Annotated[int, Field(ge=1, le=ROWS_PER_INDIVIDUAL_MAX)] | None = optional(
        "As how many selected rows an individual counts at most: each has a part of that weight. Left out, all count."
    )


WEIGHTS: Final = "The parts in which the select items share the worst case, one for each item; left out, equal parts."


class NoiseForm(Keyed):
    """One way of asking for a precision."""

    @staticmethod
    @abstractmethod
    def words(noise: Node) -> str:
        """The words for the precision, from its JSON; empty for one that is not asked for."""


class Sigma(NoiseForm):
    """The standard deviation of the noise on each coordinate, in the query's unit."""

    sigma: Annotated[Positives, doc("The standard deviation, in the query's unit; or a list, one for each item.")]

    @staticmethod
    def words(noise: Node) -> str:
        """The sigma, or the list of sigmas, in words."""
        return f"σ {numbers_text(noise['sigma'])}"


class Rho(NoiseForm):
    """The most that any individual may be charged; sigma is the smallest that keeps to it."""

    rho: Annotated[Positive, doc("The most that any individual may be charged, in rho.")]
    weights: Annotated[tuple[Positive, ...], *ByItem] | None = optional(WEIGHTS)

    @staticmethod
    def words(noise: Node) -> str:
        """The rho in words, with the parts into which it is divided."""
        return f"at most ρ {number_text(noise['rho'])} per person{_divided(noise)}"


class Share(NoiseForm):
    """The most that any individual may be charged, as a share of the dataset's budget; sigma is as for `rho`."""

    share: Annotated[
        float,
        Field(gt=0, le=1),
        doc("The most that any individual may be charged, as a share of the dataset's budget."),
    ]
    weights: Annotated[tuple[Positive, ...], *ByItem] | None = optional(WEIGHTS)

    @staticmethod
    def words(noise: Node) -> str:
        """The share in per cent, with the parts into which it is divided."""
        return f"at most {number_text(100 * noise['share'])} % of the budget per person{_divided(noise)}"


class SizeForm(NoiseForm):
    """A size of noise that has a word of its own, by which one mechanism alone is asked."""

    MECHANISM: ClassVar[str]
    """The word of the mechanism, for refusals."""

    @property
    @abstractmethod
    def size(self) -> float:
        """The size in the query's unit."""


class LaplaceScale(SizeForm):
    """The scale b of Laplace noise, whose standard deviation is √2 b, in the query's unit."""

    MECHANISM: ClassVar = "laplace"
    scale: Annotated[Positive, doc("The scale of Laplace noise, in the query's unit; for the mechanism `laplace`.")]

    @property
    def size(self) -> float:
        """The scale."""
        return self.scale

    @staticmethod
    def words(noise: Node) -> str:
        """The scale in words."""
        return f"scale {number_text(noise['scale'])}"


class HalfWidth(NoiseForm):
    """A distance within which each number is of what was counted, with at least this confidence; grid included."""

    half_width: Annotated[Positives, doc("The distance, in the query's unit; or a list, one for each item.")]
    confidence: Annotated[float, Field(gt=0, lt=1), doc("The probability with which the noise is within it.")]

    @staticmethod
    def words(noise: Node) -> str:
        """The distance and its confidence in words."""
        return f"± {numbers_text(noise['half_width'])} with {number_text(100 * noise['confidence'])} % confidence"


PREPAID_ALONE: Final = "is the noise of a tick: select exhausted, or give a sigma"


class Prepaid(NoiseForm):
    """The noise of a tick, which follows from the dataset's monitor; a query for a tick may leave it out."""

    prepaid: Annotated[Empty, doc("Nothing: `{}`.")]

    @staticmethod
    def words(noise: Node) -> str:  # noqa: ARG004 - none of it
        """An empty text, since the item says that it is a tick."""
        return ""


MechanismWord = Literal["gaussian", "laplace"]
"""The words by which a query names its mechanism; `Accounting.mechanisms` has the mechanisms."""

NOISES: Final[tuple[type[NoiseForm], ...]] = (Sigma, Rho, Share, HalfWidth, LaplaceScale, Prepaid)
"""The forms, in the order in which a document's keys are tried."""


def _divided(noise: Node) -> str:
    parts = noise.get("weights") or [1]
    return "" if len(set(parts)) == 1 else f", divided {':'.join(map(number_text, parts))}"


Noise = Annotated[
    Sigma | Rho | Share | HalfWidth | LaplaceScale | Prepaid,
    ByKey(
        "noise_kind",
        error_message="must be an object with sigma, or rho, or share, or half_width and confidence, or scale",
    ),
]
