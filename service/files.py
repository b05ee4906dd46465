"""The folders that the service reads: in the installed package, or else in the clone that it runs from."""

from pathlib import Path

import service


def folder_of(name: str, *, in_clone: str) -> Path:
    """The folder `name` of the package or, where a wheel has not put it there, the folder `in_clone` of the clone.

    The folder need not exist.
    """
    package = Path(service.__file__).parent
    return package / name if (package / name).is_dir() else package.parent / in_clone
