"""A start whose end is asked for where the interpreter drops exceptions: `python -m tests.starts PLACE ARGUMENTS`.

PLACE is `module:name`, of a function. It is called as ever, and just before it a SIGTERM comes and its exception is
dropped; ARGUMENTS are those of `sparing`.
"""

import signal
import sys
import weakref
from functools import reduce
from importlib import import_module

from service.cli.app import main


class _Short:
    """Objects that do not live long."""


def drop_signal() -> None:
    """Have SIGTERM strike inside a callback such as an import has; whatever its handler raises goes no further."""
    short = _Short()
    callback = weakref.ref(short, lambda _: signal.raise_signal(signal.SIGTERM))
    del short
    if callback() is not None:
        raise RuntimeError("no callback was called")


def _strike(place: str) -> None:
    module, _, path = place.partition(":")
    *holders, name = path.split(".")
    holder = reduce(getattr, holders, import_module(module))
    function = getattr(holder, name)

    def struck(*given: object, **named: object) -> object:
        drop_signal()
        return function(*given, **named)

    setattr(holder, name, struck)


if __name__ == "__main__":
    _strike(sys.argv.pop(1))
    main()
