"""The filter of one device in the local model: it spends its own budget, and sends a report for every query.

Feldman and Zrnic (2021), Remark 4.6: the individual filter needs only the individual's own record and the queries so
far. So each device can run the filter by itself and send v + N(0, sigma^2 I) for its vector v. For the device's budget
B, what it sends is B-zCDP and sqrt(2 B)-GDP for replacing its record by a blank one, against the collector too.

A device that has too little left sends a report of pure noise, as a device with a blank record would. Silence would
reveal the record: with sigma 10 and B = .02, a device with q(x) = 10 cannot pay and one with q(x) = 0 can, so that a
silent device has q(x) = 10. A report has the same size and takes the same work whether or not the budget pays for it,
and however long the vector is.

The account is one file, which is written and synced before a report is returned. So after a crash the device has spent
at least what it may have sent. A file that is put back to an earlier state has forgotten what was spent since, and the
promise then covers only both spendings together. A device that is restored must therefore begin without a budget.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from math import frexp, isfinite
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparing_local._rooms.device import (
    SIGMA_STEPS_MAX,
    SIGMA_STEPS_MIN,
    Accounts,
    Entropy,
    Touched,
    charge_units,
    rounded_gaussian,
    units_down,
)

CLIP_BITS: Final = 20
"""A clip has 2^19 to 2^20 steps of the grid, unless that would give sigma more than 2^28 steps."""
SIGMA_BITS: Final = 28
DIMENSION_MAX: Final = 2**20
_WITHIN: Final = 1 - 2.0**-30
"""A factor so far below 1 that no rounding of a norm of DIMENSION_MAX numbers can outweigh it."""
_SELF: Final = Touched(np.zeros(1, dtype=np.int64))


class AccountMismatch(Exception):
    """The file is not an account, or the account of another budget. A budget is fixed before the first report."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalReport:
    """The message of a device: whole steps of a grid, which depends on clip and sigma alone."""

    steps: NDArray[np.int64]  # (d,) vector + noise
    grid: float  # a power of two
    sigma: float

    @property
    def values(self) -> NDArray[np.float64]:
        """The numbers in the vector's unit, (d,)."""
        return np.multiply(self.steps, self.grid, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Account:
    budget_units: int
    spent_units: int = 0


class LocalFilter:
    """The account of one device in a file, and the reports that it pays for.

    Processes wait for each other's use of the file.

    `budget` is in rho. `clip` bounds the Euclidean norm of every vector. `sigma` is the standard deviation of the noise
    on each number of a vector, in the same unit.
    """

    def __init__(
        self, file: Path, *, budget: Decimal | str, clip: float, sigma: float, entropy: Entropy | None = None
    ) -> None:
        """Check and keep the settings; nothing is written before the first report.

        `entropy` is the operating system's by default. Raises ValueError for a budget below one unit or above 2^21 rho,
        for a clip or a sigma that is not positive and finite, and for a sigma of less than .3 or more than 2^32 steps
        of the grid.
        """
        if not (isfinite(clip) and clip > 0 and isfinite(sigma) and sigma > 0):
            raise ValueError(f"clip and sigma must be positive and finite, got {clip} and {sigma}")
        self._budget_units = units_down(Fraction(budget))
        if self._budget_units < 1:
            raise ValueError(f"budget must be at least 2^-40 rho, got {budget}")
        self.grid = 2.0 ** max(frexp(clip)[1] - CLIP_BITS, frexp(sigma)[1] - SIGMA_BITS)
        self._sigma_steps, self.sigma = sigma / self.grid, sigma
        if not SIGMA_STEPS_MIN <= self._sigma_steps <= SIGMA_STEPS_MAX:
            raise ValueError(f"sigma must be at least {SIGMA_STEPS_MIN * self.grid} with this clip, got {sigma}")
        self._clip, self._clip_squared_steps = clip, int(Fraction(clip / self.grid) ** 2)
        self._file, self._entropy = file, entropy or system_entropy

    @property
    def spent_units(self) -> int:
        """The sum of the charges, in units of 2^-40 rho. It is for the device alone and must not be sent."""
        with self._locked():
            return self._read().spent_units

    def report(self, vector: Sequence[float] | NDArray[np.float64]) -> LocalReport:
        """The vector within the clip plus noise, charged and synced; pure noise where the budget cannot pay for it.

        A vector longer than the clip is scaled to the clip. A vector with a number that is not finite counts as blank.
        Raises ValueError for anything but a row of 1 to DIMENSION_MAX numbers, AccountMismatch, and OSError where the
        file cannot be written. After an error there is no report.
        """
        numbers = np.array(vector, dtype=np.float64)
        if numbers.ndim != 1 or not 1 <= numbers.size <= DIMENSION_MAX:
            raise ValueError(f"a vector is a row of 1 to {DIMENSION_MAX} numbers, got {numbers.shape}")
        steps, norm_squared = self._within_clip(numbers)
        charges = charge_units(norm_squared, self._sigma_steps, norm_squared_max=self._clip_squared_steps)
        noise = rounded_gaussian(numbers.size, self._sigma_steps, self._entropy)
        with self._locked():
            account = self._read()
            accounts = Accounts.of(
                spent=np.array([account.spent_units]),
                limits=np.array([account.budget_units]),
                paused=np.zeros(1, dtype=np.bool_),
            )
            active = accounts.active(_SELF, charges)
            accounts.debit(_SELF, active, charges)
            self._write(_Account(budget_units=account.budget_units, spent_units=int(accounts.spent[0])))
        return LocalReport(steps=noise + steps * active, grid=self.grid, sigma=self.sigma)

    def _within_clip(self, numbers: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The vector in steps, truncated toward zero, and its squared norm (1,), which is at most the clip's.

        Integer arithmetic decides whether the vector is longer than the clip. The scaled vector is computed in either
        case, so that the work is the same.
        """
        numbers = np.where(np.isfinite(numbers).all(), numbers, 0)
        numbers = numbers * min(1.0, self._clip / max(float(np.abs(numbers).max()), self._clip))  # squares fit 64 bits
        scaled = numbers * (_WITHIN * self._clip / max(float(np.sqrt(numbers @ numbers)), self._clip))
        whole, cut = (np.trunc(each / self.grid).astype(np.int64) for each in (numbers, scaled))
        steps = np.where(whole @ whole <= self._clip_squared_steps, whole, cut)
        return steps, np.array([steps @ steps])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The lock on the account, which the kernel releases when the process ends."""
        descriptor = os.open(self._file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _read(self) -> _Account:
        if not self._file.exists():
            return _Account(budget_units=self._budget_units)
        try:
            account = _Account(**json.loads(self._file.read_text(encoding="ascii")))
            is_sound = 0 <= account.spent_units <= account.budget_units
        except (ValueError, TypeError):
            raise AccountMismatch(f"{self._file} is no account") from None
        if not is_sound or account.budget_units != self._budget_units:
            raise AccountMismatch(f"{self._file} is the account of another budget")
        return account

    def _write(self, account: _Account) -> None:
        """Replace the file, and sync it and its folder. A crash leaves either the old file or the new one."""
        new = self._file.with_suffix(".new")
        with new.open("w", encoding="ascii") as stream:
            json.dump(asdict(account), stream)
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(self._file)
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def system_entropy(count: int) -> NDArray[np.uint64]:
    """Random words from the operating system's generator."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
