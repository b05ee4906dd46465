"""Folders are found in the package of a wheel, and in a clone where a wheel has put nothing."""

from pathlib import Path

import pytest

import service
from service.files import folder_of
from tests.architecture.source import ROOT


def test_a_clone_has_its_folders_beside_the_package() -> None:
    """The migrations, and a folder that nobody has made yet."""
    assert folder_of("migrations", in_clone="migrations") == ROOT / "migrations"
    assert folder_of("missing", in_clone="clients/missing") == ROOT / "clients" / "missing"


def test_a_folder_of_the_package_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder beside an installed package is none of its own."""
    (tmp_path / "service" / "migrations").mkdir(parents=True)
    (tmp_path / "migrations").mkdir()
    monkeypatch.setattr(service, "__file__", str(tmp_path / "service" / "__init__.py"))

    assert folder_of("migrations", in_clone="migrations") == tmp_path / "service" / "migrations"
