"""The name that was probably meant where a name is not known, for refusals.

Candidates are names that the asker may read anyway: those of the public schema, and of the datasets that its key may
use. The work is bounded however many names there are, and is done for refused queries alone.
"""

import difflib
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from service.query.problems import quoted

NAME_MAX: Final = 64
"""The length of the longest name that is looked for or suggested. One character is quoted as up to ten."""
COMPARED_MAX: Final = 30_000
"""The most comparisons: characters of the name times characters of the candidates. Further candidates are ignored."""

Name = str | int


def did_you_mean(asked: object, names: Collection[Name]) -> str:
    """The text `; did you mean 'Ideal'?` with the nearest name, or an empty text where none is near.

    Names in lower, upper, capitalised and title case are looked up by themselves, however many names there are.
    """
    found = _nearest(asked, names) if isinstance(asked, str | int) and not isinstance(asked, bool) else None
    return "" if found is None else f"; did you mean {quoted(found)}?"


def no_dataset(asked: str, names: Collection[str]) -> str:
    """The refusal of a dataset that does not exist or is not for this key. `names` are the datasets that are."""
    return f"There is no dataset {quoted(asked)} for this key{did_you_mean(asked, names) or '.'}"


def _nearest(asked: Name, names: Collection[Name]) -> Name | None:
    text = str(asked)
    if not 0 < len(text) <= NAME_MAX:
        return None
    same = next((each for each in _spellings(asked) if each in names and each != asked), None)
    if same is not None:
        return same
    folded: dict[str, Name] = {}
    for name in _compared(text, names):
        folded.setdefault(str(name).casefold(), name)
    close = difflib.get_close_matches(text.casefold(), folded, n=1)
    return folded[close[0]] if close else None


def _spellings(asked: Name) -> Iterator[Name]:
    """A name in other capitals, without blanks around it, and as a text or a number."""
    if isinstance(asked, int):
        yield str(asked)
        return
    text = asked.strip()
    yield from (text, text.lower(), text.upper(), text.capitalize(), text.title())
    if text.isascii() and text.removeprefix("-").isdigit():
        yield int(text)


def _compared(text: str, names: Iterable[Name]) -> Iterator[Name]:
    """The first of the names, up to COMPARED_MAX."""
    work = 0
    for name in names:
        length = min(len(str(name)), NAME_MAX + 1)
        work += length * len(text)
        if work > COMPARED_MAX:
            return
        if isinstance(name, str) and name != text and length <= NAME_MAX:
            yield name
