"""The keys of individuals: which texts are the key of one individual, and which may be meant for one person.

A dataset states how it compares keys, for good. A key is stored, listed, digested and looked up in the form that this
comparison gives it, so that two keys are of one individual exactly where their texts are equal. No comparison depends
on a locale. `plain` identifies more texts than any comparison. Keys whose plain forms are equal may be one person's,
and the curator is warned of them.
"""

import re
from fractions import Fraction
from typing import Final, Literal, NewType, assert_never
from unicodedata import category, normalize
from uuid import UUID

Key = NewType("Key", str)
"""A key in the form in which its dataset compares it."""
KeyComparison = Literal["exact", "caseless", "number", "uuid"]

KEY_CHARACTERS_MAX: Final = 256
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_HEX: Final = r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_UUID: Final = re.compile(rf"(?:urn:uuid:)?(?:({_HEX})|\{{({_HEX})\}})", re.ASCII | re.IGNORECASE)
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
_IGNORABLE: Final = {
    *map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0)),
    *map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))),
}
"""Characters without a width that Unicode counts among letters and marks (Default_Ignorable_Code_Point)."""


class UnfitKey(ValueError):
    """The text can be no key under a comparison. The message says why and does not quote the text."""


def compared(text: str, comparison: KeyComparison) -> Key:
    """The key that a text stands for: the same for two texts exactly where they are of one individual.

    `exact` takes the text as it is. `caseless` is the canonical caseless match of the Unicode Standard (section 3.13,
    definition D145), which Unicode keeps stable for the characters that are assigned. `number` takes whole numbers by
    their value, in ASCII digits, with a sign, zeros in front, a fraction of zeros or an exponent. `uuid` takes a UUID
    by its 128 bits (RFC 9562), in either case, with or without hyphens and braces.

    Raises UnfitKey. A key is its own key.
    """
    match comparison:
        case "exact":
            return Key(text)
        case "caseless":
            return _short(_caseless(text))
        case "number":
            number = _number(text)
            if number is None:
                raise UnfitKey("the key is not a whole number")
            return _short(number)
        case "uuid":
            uuid = _uuid(text)
            if uuid is None:
                raise UnfitKey("the key is not a UUID")
            return Key(uuid)
        case _:
            assert_never(comparison)


def plain(text: str) -> str:
    """The form in which keys that are easily confused are equal.

    Such keys differ in case, in composed, compatibility or invisible characters, in blanks, or in how a whole number or
    a UUID is written (D146 of the Unicode Standard, without invisible characters).
    """
    folded = normalize("NFKD", normalize("NFKD", normalize("NFD", text).casefold()).casefold())
    visible = (each for each in folded if category(each) not in _INVISIBLE and each not in _IGNORABLE)
    joined = normalize("NFKC", "".join(visible))
    return _number(joined) or _uuid(joined) or joined


def _short(text: str) -> Key:
    if len(text) > KEY_CHARACTERS_MAX:
        raise UnfitKey(f"the key, as it is compared, is longer than {KEY_CHARACTERS_MAX} characters")
    return Key(text)


def _caseless(text: str) -> str:
    if any(category(each) == "Cn" for each in text):
        raise UnfitKey("the key holds a character that Unicode has not assigned")
    return normalize("NFC", normalize("NFD", text).casefold())


def _number(text: str) -> str | None:
    """The digits of a whole number; None for any other text."""
    if _NUMBER.fullmatch(text) is None or len(text) > KEY_CHARACTERS_MAX:
        return None
    value = Fraction(text)
    return str(value.numerator) if value.denominator == 1 else None


def _uuid(text: str) -> str | None:
    """A UUID in small letters with hyphens; None for any other text."""
    found = _UUID.fullmatch(text)
    return None if found is None else str(UUID(found[1] or found[2]))
