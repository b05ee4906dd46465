"""Keys are compared as their dataset states; `plain` is wider than every comparison."""

import unicodedata
from decimal import Decimal
from fractions import Fraction
from typing import Final
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.query.keys import KEY_CHARACTERS_MAX, KeyComparison, UnfitKey, compared, plain

COMPARISONS: Final[tuple[KeyComparison, ...]] = ("exact", "caseless", "number", "uuid")
LETTERS: Final = (
    "aA\u00e9\u00c9e\u0301\u00dfs\u1e9e\u0130i\u0131\u03c3\u03c2\u0345\u0391\ufb01\uff21\u200b\ufe0f\u00ad 7"
)
TEXTS: Final = st.one_of(st.text(LETTERS, max_size=6), st.text(max_size=6))
WHOLE: Final = st.integers(-(10**30), 10**30)
UUIDS: Final = st.uuids().map(str)
ANY: Final = st.one_of(TEXTS, WHOLE.map(str), st.text("0123456789+-.eE", max_size=6), UUIDS, UUIDS.map(str.upper))


@st.composite
def numerals(draw: st.DrawFn, value: int) -> str:
    """A whole number as somebody may write it."""
    digits = f"{'0' * draw(st.integers(0, 3))}{abs(value)}"
    zeros = len(digits) - len(digits.rstrip("0"))
    shift = draw(st.integers(0, zeros)) if value else 0
    sign = "-" if value < 0 else draw(st.sampled_from(["", "+"]))
    mantissa = digits[: len(digits) - shift]
    fraction = draw(st.sampled_from(["", ".", ".0", ".000"]))
    exponent = draw(st.sampled_from(["e", "E"])) + draw(st.sampled_from(["", "+"])) + f"{shift:02}" if shift else ""
    return f"{sign}{mantissa}{fraction}{exponent}"


@pytest.mark.parametrize("comparison", COMPARISONS)
@given(text=ANY)
def test_the_key_of_a_key_is_itself(comparison: KeyComparison, text: str) -> None:
    """So a stored key can be read, sent and looked up again."""
    try:
        key = compared(text, comparison)
    except UnfitKey:
        return
    assert compared(key, comparison) == key
    assert len(key) <= KEY_CHARACTERS_MAX
    assert plain(key) == plain(text)


@given(text=ANY)
def test_a_plain_form_is_its_own(text: str) -> None:
    """It is the least written of its twins."""
    assert plain(plain(text)) == plain(text)


@given(text=ANY)
def test_exact_keys_are_their_texts(text: str) -> None:
    """Nothing in them is looked at."""
    assert compared(text, "exact") == text


@given(text=TEXTS)
def test_caseless_keys_have_no_case_and_no_form_of_composition(text: str) -> None:
    """Definition D145: texts match where their case folds are canonically equivalent."""
    assigned = "".join(each for each in text if unicodedata.category(each) != "Cn")
    key = compared(assigned, "caseless")
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", assigned).casefold())
    assert unicodedata.normalize("NFD", key) == folded
    for form in ("NFC", "NFD"):
        assert compared(unicodedata.normalize(form, assigned), "caseless") == key


@given(value=WHOLE, data=st.data())
def test_numbers_are_keys_by_their_value(value: int, data: st.DataObject) -> None:
    """However they are written."""
    written = data.draw(numerals(value))
    assert Fraction(Decimal(written)) == value
    assert compared(written, "number") == str(value)
    assert plain(written) == str(value)


@given(uuid=st.uuids())
def test_uuids_are_keys_by_their_bits(uuid: UUID) -> None:
    """In either case, with and without hyphens and braces."""
    for bare in (str(uuid), uuid.hex):
        for text in (bare, bare.upper(), f"{{{bare}}}", f"urn:uuid:{bare}", f"URN:UUID:{bare.upper()}"):
            assert (compared(text, "uuid"), plain(text)) == (str(uuid), str(uuid))


@pytest.mark.parametrize(
    ("comparison", "text", "fault"),
    [
        ("caseless", "a\u0378", "a character that Unicode has not assigned"),
        ("caseless", "\u0390" * KEY_CHARACTERS_MAX + "\u0149", "longer than 256 characters"),
        *(
            ("number", text, "not a whole number")
            for text in ("", "7.5", "1e-1", " 7", "1_0", "0x7", "nan", "inf", "--1")
        ),
        *(
            ("number", text, "not a whole number")
            for text in ("\uff17", "\u0667", "1e1000", "1" * 257, "1,0", "e5", ".")
        ),
        ("number", "1e300", "longer than 256 characters"),
        *(
            ("uuid", text, "not a UUID")
            for text in ("", "7", f"{UUID(int=7)} ", f"{{{UUID(int=7)}", f"{UUID(int=7)}}}")
        ),
        *(("uuid", text, "not a UUID") for text in (f"{UUID(int=7).hex}0", "0-" * 32, f"uuid:{UUID(int=7)}")),
    ],
)
def test_what_can_be_no_key_is_refused(comparison: KeyComparison, text: str, fault: str) -> None:
    """In words without the text."""
    with pytest.raises(UnfitKey, match=fault) as refused:
        compared(text, comparison)
    assert len(text) < 2 or text not in str(refused.value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ada@x.org", "ada@X.ORG"),
        ("Jos\u00e9", "Jose\u0301"),
        ("stra\u00dfe", "STRASSE"),
        ("\ufb01n", "fin"),
        ("\uff21nn", "Ann"),
        ("\ufeffann", "ann"),
        ("an\u200bn", "ann"),
        ("an\u00adn", "ann"),
        ("\u2764\ufe0f", "\u2764"),
        ("ann\u00a0lee", "ann lee"),
        ("7", "007"),
        ("7", "+7"),
        ("7", "\uff17"),
        ("100000", "1e+05"),
        ("100000", "100000.0"),
        ("6f9619ff-8b86-d011-b42d-00cf4fc964ff", "{6F9619FF-8B86-D011-B42D-00CF4FC964FF}"),
    ],
)
def test_near_twins_have_one_plain_form(one: str, other: str) -> None:
    """Case, composition, compatibility, what is invisible, zeros, exponents and the forms of a UUID."""
    assert plain(one) == plain(other)


@pytest.mark.parametrize(("one", "other"), [("ann", "anne"), ("7", "70"), ("e", "\u00e9"), ("7.5", "7"), ("a-b", "ab")])
def test_different_keys_have_different_plain_forms(one: str, other: str) -> None:
    """An accent, a digit or a hyphen tells people apart."""
    assert plain(one) != plain(other)
