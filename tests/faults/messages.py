"""The messages of a Postgres client, cut at the COMMIT of an answer, or at every round trip."""

from collections.abc import Iterator

_ENDS = (b"BEGIN", b"COMMIT", b"ROLLBACK")
_EXTENSION = b"WITH moved AS (UPDATE heads"  # makes answers last with its transaction, or commits by itself


class Messages:
    """A client's bytes as messages: the startup packet, then a type byte, a length and the rest."""

    def __init__(self, type_bytes: int = 0) -> None:
        self._waiting = b""
        self._type_bytes = type_bytes  # the very first message has none

    def take(self, data: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
        """(message, type, words) of each that is complete now."""
        self._waiting += data
        while True:
            length = self._waiting[self._type_bytes : self._type_bytes + 4]
            size = self._type_bytes + int.from_bytes(length, "big")
            if len(length) < 4 or len(self._waiting) < size:
                return
            message, self._waiting = self._waiting[:size], self._waiting[size:]
            yield message, message[: self._type_bytes], message[self._type_bytes + 4 :]
            self._type_bytes = 1


class Commits:
    """Sets every COMMIT apart that makes an answer last, and every statement that does so by itself.

    A COMMIT comes as a simple query, or, in a pipeline, as Parse, Bind, Describe and Execute with the Sync that ends
    the pipeline: those five are one part here. Of a statement that was prepared before, Bind is the first; that it is
    prepared makes nothing last.
    """

    def __init__(self) -> None:
        self._messages = Messages()
        self._statements: dict[bytes, bytes] = {}
        self._is_open = self._has_answer = self._executes = False
        self._commit = b""

    def split(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """The messages that are complete now, in few parts; True with those that are set apart."""
        passing = b""
        for message, kind, words in self._messages.take(data):
            begins = not self._commit and self._begins(kind, words)
            if begins:
                yield passing, False
                passing = b""
            self._look_at(kind, words)
            if not begins and not self._commit:
                passing += message
                continue
            self._commit += message
            self._executes |= kind in {b"Q", b"E"}
            if kind in {b"Q", b"S"}:
                yield self._commit, self._executes
                self._commit, self._executes = b"", False
        yield passing, False

    def _begins(self, kind: bytes, words: bytes) -> bool:
        """Tell whether a message is the first of what is to be set apart."""
        if kind in {b"P", b"B"} and not self._is_open:
            return self._statement(kind, words).startswith(_EXTENSION)
        return self._has_answer and _is_commit(kind, words)

    def _statement(self, kind: bytes, words: bytes) -> bytes:
        """The text that a Parse brings or a Bind names."""
        name_or_text = words.split(b"\0", 2)[1]
        return name_or_text if kind == b"P" else self._statements.get(name_or_text, b"")

    def _look_at(self, kind: bytes, words: bytes) -> None:
        if kind == b"P":  # Parse: name, text
            name, text = words.split(b"\0", 2)[:2]
            self._statements[name] = text
            self._move_on(text)
        elif kind == b"B":  # Bind: portal, name
            self._has_answer |= self._is_open and self._statement(kind, words).startswith(_EXTENSION)
        elif kind == b"Q":
            self._move_on(words.rstrip(b"\0"))

    def _move_on(self, text: bytes) -> None:
        """Into a transaction, or out of one."""
        if text.upper() in _ENDS:
            self._is_open, self._has_answer = text.upper() == b"BEGIN", False


class RoundTrips:
    """Sets everything apart for which a client waits, once it is authenticated.

    It waits after a Query, a Sync, a Flush, and after the end of the rows that a Query asked for.
    """

    def __init__(self) -> None:
        self._messages = Messages()
        self._is_simple = False
        self._round_trip = b""

    def split(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """The messages that are complete now, in few parts; True with those that are set apart."""
        for message, kind, _ in self._messages.take(data):
            if kind in {b"", b"p"}:  # startup and password
                yield message, False
                continue
            self._round_trip += message
            if kind in {b"Q", b"P"}:
                self._is_simple = kind == b"Q"
            if kind in {b"Q", b"S", b"H"} or (kind == b"c" and self._is_simple):
                part, self._round_trip = self._round_trip, b""
                yield part, True


def spoilt(part: bytes) -> bytes:
    """The messages with the first statement or copy made such that Postgres must refuse it, if there is one."""
    messages = list(Messages(type_bytes=1).take(part))
    for at, (_, kind, words) in enumerate(messages):
        wrong = _spoilt_words(kind, words)
        if wrong is not None:
            name, text = wrong
            others = [b"".join(message for message, _, _ in some) for some in (messages[:at], messages[at + 1 :])]
            return others[0] + name + (len(text) + 4).to_bytes(4, "big") + text + others[1]
    return part


def _spoilt_words(kind: bytes, words: bytes) -> tuple[bytes, bytes] | None:
    """(type, words) that are refused in the place of a message."""
    if kind == b"P":
        name, text, types = words.split(b"\0", 2)
        return None if text.startswith(b"BEGIN") else (kind, name + b"\0PLANTED\0" + types)
    if kind == b"B":
        portal, name, values = words.split(b"\0", 2)
        return (kind, portal + b"\0planted\0" + values) if name else None
    if kind == b"Q":
        return kind, b"PLANTED\0"
    return (b"f", b"planted\0") if kind == b"c" else None


def _is_commit(kind: bytes, words: bytes) -> bool:
    """Tell whether a message is Query or Parse of COMMIT."""
    return (kind == b"Q" and words == b"COMMIT\0") or (kind == b"P" and words.split(b"\0", 2)[1] == b"COMMIT")
