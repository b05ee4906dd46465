"""Draw the papers' figures: `make figures ARGS="--only koskela-5"`.

The folder gets the numbers of each figure as CSV, its drawing as PNG and SVG, and a file with the seeds. Figures of
MNIST need the file of the images (--digits, or SPARING_DIGITS), and are left out without it. With --quick, everything
is coarser, and generated digits take the place of the file. --docs also puts small pictures into docs/figures, and
numbers that no seed repeats into clients/papers/kept.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sparing_papers import (
    accountants,
    feldman_zrnic,
    feldman_zrnic_digits,
    koskela,
    koskela_descent,
    koskela_sampled,
    koskela_served,
    poisson_filters,
)
from sparing_papers.counted import served
from sparing_papers.digits import UnreadableDigits, is_mnist, read_digits, read_images
from sparing_papers.figure import PaperFigure, Request
from sparing_papers.labelled import Labelled
from sparing_papers.made_up import made_up_digits
from sparing_papers.style import save, save_numbers, save_small

FIGURES: Final = [
    *accountants.FIGURES,
    *koskela_sampled.FIGURES,
    *poisson_filters.FIGURES,
    *koskela.FIGURES,
    *koskela_descent.FIGURES,
    *koskela_served.FIGURES,
    *feldman_zrnic.FIGURES,
    *feldman_zrnic_digits.FIGURES,
]
ROOT: Final = Path(__file__).parents[4]
SEED: Final = 20260218


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the figures that the arguments ask for."""
    wished = _options().parse_args(arguments)
    console = Console(stderr=True)
    figures = [each for each in FIGURES if not wished.only or each.name in wished.only]
    unread = wished.digits is None and not wished.quick
    for each in (each for each in figures if unread and each.needs_digits):
        console.print(f"{each.name} is left out: it needs --digits FILE.npz")
    figures = [each for each in figures if not (unread and each.needs_digits)]
    is_read = not wished.quick and any(each.needs_digits for each in figures)
    digits = _read(wished.digits, console) if is_read else made_up_digits(wished.seed)
    wished.out.mkdir(parents=True, exist_ok=True)
    _save_seeds(wished, figures)
    began = time.monotonic()
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as progress, ExitStack() as stack:
        running = cache(lambda: stack.enter_context(served()))
        request = Request(seed=wished.seed, quick=wished.quick, digits=digits, served=lambda: nullcontext(running()))
        task = progress.add_task("figures", total=sum(each.share for each in figures))
        for each in figures:
            _one(each, request, wished, progress, task)
    console.print(f"{len(figures)} figures in {wished.out} after {time.monotonic() - began:.0f} s")


def _read(file: Path, console: Console) -> Labelled:
    """The images of a file as features; one that cannot be read ends the command in one line."""
    try:
        if not is_mnist(read_images(file)):
            console.print(f"{file} holds other arrays than MNIST's: its figures are not those of docs/papers.md")
        return read_digits(file)
    except UnreadableDigits as error:
        sys.exit(f"--digits: {error}")


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="make figures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--only", nargs="+", metavar="NAME", choices=[each.name for each in FIGURES], default=[])
    options.add_argument("--quick", action="store_true", help="coarser, and generated digits: for a test")
    options.add_argument("--seed", type=int, default=SEED)
    options.add_argument("--out", type=Path, default=Path("build/figures"))
    options.add_argument("--docs", action="store_true", help="also small pictures into docs/figures")
    held = os.environ.get("SPARING_DIGITS")
    options.add_argument("--digits", type=Path, default=Path(held) if held else None, metavar="FILE.npz")
    return options


def _one(figure: PaperFigure, request: Request, wished: argparse.Namespace, progress: Progress, task: TaskID) -> None:
    done = progress.tasks[0].completed
    progress.update(task, description=figure.name)

    def tell(share: float) -> None:
        progress.update(task, completed=done + share * figure.share)

    table = figure.compute(replace(request, tell=tell))
    progress.console.print(f"{figure.title}: {', '.join(file.name for file in save(figure, table, wished.out))}")
    if wished.docs:
        folder = ROOT / "docs" / "figures"
        folder.mkdir(exist_ok=True)
        save_small(figure, table, folder)
        if figure.keeps_numbers:
            save_numbers(figure, table, ROOT / "clients" / "papers" / "kept")
    progress.update(task, completed=done + figure.share)


def _save_seeds(wished: argparse.Namespace, figures: Sequence[PaperFigure]) -> None:
    stated = {
        "seed": wished.seed,
        "quick": wished.quick,
        "digits": None if wished.digits is None or wished.quick else wished.digits.name,
        "figures": [each.name for each in figures],
        "numpy": version("numpy"),
        "matplotlib": version("matplotlib"),
        "python": sys.version.split()[0],
    }
    (wished.out / "seeds.json").write_text(json.dumps(stated, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
