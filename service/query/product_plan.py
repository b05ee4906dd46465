"""The outer product that an individual adds: of features with each other, or with a model's error.

An individual's gradient is error ⊗ features. Features are whole steps (`service.query.features`), and parameters are
rounded to whole steps too. So a prediction's argument is an exact sum. With real parameters its last digit would depend
on the other individuals in the same product of matrices. The error is rounded to steps of 2^error_log2, scaled to the
clip, truncated toward zero and then measured.
"""

from dataclasses import dataclass
from typing import Final

from service.query.features import FeatureMap
from service.query.model_parameters import PackedParameters
from service.query.runs import BLOCK_ROWS, RUN_ENTRIES

WIDE_ROWS: Final = 256
"""The individuals with many factors that are worked on at once, if that makes no more than WIDE_ENTRIES factors."""
WIDE_ENTRIES: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(PackedParameters):
    """A linear model at given parameters, and how its error is counted."""

    loss: str
    target: str  # the column
    target_offset: int  # of `squared`, the target is (code + offset) * 2**target_log2
    target_log2: int
    target_span: int
    parameter_log2: int  # of a step of the parameters
    error_max: float  # the largest error of one class, in its unit
    error_log2: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPlan:
    """The products that an individual adds: of its features with each other, or with the model's error."""

    features: FeatureMap
    model: Model | None  # None: with each other

    @property
    def classes(self) -> int:
        """The number of errors of an individual; 0 for moments."""
        return 0 if self.model is None else self.model.classes

    @property
    def width(self) -> int:
        """The number of features and errors of an individual."""
        return self.features.size + self.classes


def rows_in_products(width: int) -> int:
    """The number of individuals, with `width` factors each, that are worked on at once: as many as stay in cache.

    Wide individuals may have up to 2^20 factors in a block together, because their sum, of 40,000 numbers or more, is
    added to the total only once a block.
    """
    return min(max(RUN_ENTRIES // width, min(WIDE_ROWS, WIDE_ENTRIES // width), 1), BLOCK_ROWS)
