"""`make figures ARGS="--quick"`: every figure in well under a minute of a processor, by a process of its own."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clients.papers.tests.admitted import cells_of
from sparing_papers.__main__ import FIGURES, main
from sparing_papers.accountants import WORKLOADS
from tests.rotation import some_of

NAMES = [each.name for each in FIGURES]


PARTS = (NAMES[::2], NAMES[1::2])
Drawn = Callable[[str], Path]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """The folder of a figure, as the command leaves it: half of them are drawn when one is first asked for."""
    folders: dict[int, Path] = {}

    def folder_of(name: str) -> Path:
        number = next(number for number, names in enumerate(PARTS) if name in names)
        if number not in folders:
            folders[number] = tmp_path_factory.mktemp("figures")
            draw(folders[number], "--only", *PARTS[number])
        return folders[number]

    return folder_of


def draw(folder: Path, *more: str) -> None:
    """Draw as `make figures` does: with one thread of BLAS, whose sums are equal bit by bit."""
    command = [sys.executable, "-m", "sparing_papers", "--quick", "--out", str(folder), *more]
    path = os.pathsep.join(each for each in sys.path if each)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def rows(file: Path) -> list[list[str]]:
    """The rows of a CSV, without its header."""
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.reader(opened))[1:]


@pytest.mark.parametrize("part", PARTS, ids=["even", "odd"])
def test_every_figure_has_its_files(drawn: Drawn, part: list[str]) -> None:
    """Numbers, picture and drawing, and the seeds of all."""
    kinds, folder = {"csv": b"", "png": b"\x89PNG", "svg": b"<?xml"}, drawn(part[0])
    for name in part:
        for kind, beginning in kinds.items():
            content = (folder / f"{name}.{kind}").read_bytes()
            assert content.startswith(beginning)
            assert len(content) > 500 or kind == "csv"
    seeds = json.loads((folder / "seeds.json").read_text(encoding="utf-8"))
    assert (seeds["figures"], seeds["quick"]) == (part, True)


def test_the_service_answers_as_many_counts_as_the_curves_say(drawn: Drawn) -> None:
    """Counts of one individual, under each accounting: 478, 405 and 268 at .8, 495 and 420 at .81563."""
    suffix = ", answered by the service"
    answered = {
        (name, epsilon): int(k)
        for name, epsilon, k in rows(drawn("koskela-5") / "koskela-5.csv")
        if name.endswith(suffix)
    }

    assert answered == {
        (f"gdp{suffix}", "0.8"): 478,
        (f"zcdp{suffix}", "0.8"): 405,
        (f"zcdp, simple{suffix}", "0.8"): 268,
        (f"gdp{suffix}", "0.81563"): 495,
        (f"zcdp{suffix}", "0.81563"): 420,
    }


def test_the_charges_of_a_served_fit_add_up(drawn: Drawn) -> None:
    """To the unit, in the figure's own numbers; and worked out again within their bounds."""
    found = {
        name: float(value)
        for name, _, value, _ in rows(drawn("koskela-tabular-service") / "koskela-tabular-service.csv")
    }

    assert found["units, sum of accounts"] == found["units, sum of the ledger"] > 0
    assert 0 < found["difference of an individual, largest part of its bound"] <= 1


def test_the_admitted_steps_are_those_of_the_page(drawn: Drawn) -> None:
    """By each accountant, of each workload."""
    drawn_rows = rows(drawn("admitted-steps") / "admitted-steps.csv")
    for name in WORKLOADS:
        assert [int(steps) for workload, _, steps in drawn_rows if workload == name] == cells_of(name)


def test_equal_seeds_give_equal_files(drawn: Drawn, tmp_path: Path) -> None:
    """Bit by bit in another process, pictures included."""
    names = ["koskela-1", "koskela-6", "koskela-tabular-2", "feldman-zrnic-odometers", "feldman-zrnic-1"]
    chosen = some_of(names, 3)
    draw(tmp_path, "--only", *chosen)

    for name in chosen:
        for kind in ("csv", "svg"):
            assert (tmp_path / f"{name}.{kind}").read_bytes() == (drawn(name) / f"{name}.{kind}").read_bytes(), name


def test_an_unknown_figure_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With the names that there are."""
    with pytest.raises(SystemExit):
        main(["--only", "koskela-11"])

    assert "koskela-10" in capsys.readouterr().err


def test_figures_of_digits_are_left_out_without_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And say so; nothing is generated in the place of the data but with --quick."""
    monkeypatch.delenv("SPARING_DIGITS", raising=False)
    main(["--only", "feldman-zrnic-1", "koskela-2", "--out", str(tmp_path)])

    assert sorted(path.name for path in tmp_path.iterdir()) == ["seeds.json"]
    assert capsys.readouterr().err.count("is left out: it needs --digits FILE.npz") == 2
