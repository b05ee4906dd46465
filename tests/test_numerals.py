"""A number written as text is read in one way, on every surface."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from typer import BadParameter
from typer.testing import CliRunner

from service.api.models import Rho
from service.cli.app import app
from service.cli.options import whole
from service.ledger.model.stated_guarantee import StatedGuarantee
from service.ledger.model.stated_monitor import StatedMonitor
from service.numerals import decimal_of, integer_of, is_digits
from service.settings.oidc_settings import OidcGrant

MISREAD = ("1_000", " 5 ", "5 ", "5\n", "+5", "\u0661\u0662", "\uff15", "1e0_1", "0x1", "", "-", "\u00b2", "1" * 101)
NO_DECIMALS = (*MISREAD, "nan", "inf", "1e", ".", "1,5", "1e1.5", "--1")


@pytest.mark.parametrize("text", [*MISREAD, "1.0", "1e3"])
def test_a_text_that_may_be_misread_is_no_integer(text: str) -> None:
    """Python's `int` reads most of them."""
    with pytest.raises(ValueError, match="digits 0 to 9"):
        integer_of(text)
    assert not is_digits(text) or len(text) > 100


@pytest.mark.parametrize("text", NO_DECIMALS)
def test_a_text_that_may_be_misread_is_no_decimal(text: str) -> None:
    """Python's `Decimal` reads most of them."""
    with pytest.raises(ValueError, match="digits 0 to 9"):
        decimal_of(text)


def test_plain_numbers_are_read_exactly() -> None:
    """They are written as in JSON, or without a digit before or after the point."""
    assert [integer_of(text) for text in ("0", "-5", "007")] == [0, -5, 7]
    texts = ("0.5", "-2", "1e-6", "1E+3", ".5", "5.", "0.1000000000000000000001")
    assert [decimal_of(text) for text in texts] == [Decimal(text) for text in texts]


STATED: list[tuple[Any, dict[str, Any], str]] = [
    *((StatedGuarantee, {"epsilon": "1", "delta": "1e-6"}, name) for name in ("epsilon", "delta")),
    (StatedGuarantee, {"rho": "1"}, "rho"),
    (StatedMonitor, {"rho": "1", "ticks": 4, "share": 0.5}, "rho"),
    (OidcGrant, {"role": "analyst", "allowance_rho": "1"}, "allowance_rho"),
]


@pytest.mark.parametrize(("model", "right", "field"), STATED)
def test_a_stated_decimal_is_read_as_it_is_written(model: Any, right: dict[str, Any], field: str) -> None:
    """In registrations, monitors and grants: a number or a plain text, never `true`."""
    model.model_validate(right)
    model.model_validate(right | {field: 0.5})
    for wrong in (*NO_DECIMALS, True):
        with pytest.raises(ValidationError) as caught:
            model.model_validate(right | {field: wrong})
        assert [error["loc"] for error in caught.value.errors()] == [(field,)], wrong


def test_a_limit_is_read_as_it_is_written() -> None:
    """The limits are of allowances and of individuals."""
    limit = TypeAdapter(Rho)
    assert [limit.validate_python(given) for given in ("0.5", 1, 0.5)] == [Decimal("0.5"), 1, Decimal("0.5")]
    for wrong in (*NO_DECIMALS, True):
        with pytest.raises(ValidationError):
            limit.validate_python(wrong)


def test_true_is_no_share() -> None:
    """Nor is a text: a share is a number."""
    for wrong in (True, "0.5"):
        with pytest.raises(ValidationError):
            StatedMonitor.model_validate({"rho": "1", "ticks": 4, "share": wrong})


@pytest.mark.parametrize("text", MISREAD)
def test_a_number_of_a_command_is_read_as_it_is_written(text: str, tmp_path: Path) -> None:
    """The command ends before anything is done."""
    done = CliRunner().invoke(app, ["serve", "--home", str(tmp_path / "home"), "--port", text])
    assert (done.exit_code, (tmp_path / "home").exists()) == (2, False)


def test_an_integer_of_a_command_is_within_bounds() -> None:
    """The bounds are told."""
    assert [whole(1, 9)("5"), whole(1)("5000")] == [5, 5000]
    for parser, wrong, told in ((whole(1, 9), "10", "must be 1 to 9, got 10"), (whole(1), "0", "must be at least 1")):
        with pytest.raises(BadParameter, match=told):
            parser(wrong)
