"""The demo from beginning to end: prepare, ask, compare, show."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from sparing import Answer, Client, Dataset
from sparing_demo.console import show
from sparing_demo.dataset import Area, WebVisits, read_web_visits
from sparing_demo.export import write_csv, write_json
from sparing_demo.plot import draw
from sparing_demo.report import DemoReport, Keys, area_results, budgets_of
from sparing_demo.session import DATASET, ask_everything, make_keys, prepare, read_own_account

PAGE_SIZE = 1000
Asked = list[tuple[Area, Answer]]
Connect = Callable[[str], Client]  # from an API key


def run_demo(
    *,
    base_url: str,
    curator_key: str,
    out_dir: Path,
    console: Console | None = None,
    transport: httpx.BaseTransport | None = None,
) -> DemoReport:
    """Run the demo against the service at `base_url`, and write a picture, a table and a report to `out_dir`.

    It may be run again: what is registered and uploaded stays, and queries that were answered before get the same
    answers at no charge.

    Args:
        base_url: the service's address.
        curator_key: a curator's API key; the demo makes an analyst's and an individual's key with it.
        out_dir: where the files go; created if missing.
        console: where the text is printed; by default the standard output.
        transport: replaces the network in tests.

    Raises:
        SparingError: the service refuses, or cannot be reached.
        NotTheDemo: another dataset has the demo's name.
        OSError: `out_dir` cannot be written.
    """
    console = _standard_output() if console is None else console
    out_dir.mkdir(parents=True, exist_ok=True)
    data = read_web_visits()

    def connect(key: str) -> Client:
        return Client(base_url=base_url, api_key=key, transport=transport)

    with connect(curator_key) as curator:
        with console.status(f"Registering {DATASET} and uploading {len(data.visits):,} visits"):
            dataset = prepare(curator, data)
            keys = make_keys(curator, individual=_keenest(data))
        asked, seconds = _ask(connect(keys.analyst), data, console)
        with console.status("The curator sets the data, the ledger and the budgets beside the answers"):
            report = _compare(curator, connect(keys.individual), dataset=dataset, data=data, keys=keys, asked=asked)
    report = _write(replace(report, base_url=base_url, seconds=seconds), out_dir)
    show(report, console)
    return report


def _ask(client: Client, data: WebVisits, console: Console) -> tuple[Asked, float]:
    """Ask every query. Returns the answers in the order asked, and the seconds that they took together."""
    began = time.monotonic()
    with client, _progress(console, len(data.areas)) as heard:
        asked = list(ask_everything(client, data.areas, heard=heard))
    return asked, time.monotonic() - began


def _compare(
    curator: Client, individual: Client, *, dataset: Dataset, data: WebVisits, keys: Keys, asked: Asked
) -> DemoReport:
    """The curator's view: the truth, the active individuals, and the remaining budgets."""
    charge_rho = asked[0][1].worst_case_rho
    ledger = curator.datasets.ledger(dataset=DATASET, page_size=PAGE_SIZE)
    budgets = curator.datasets.budgets(dataset=DATASET, page_size=PAGE_SIZE)
    keenest = _keenest(data)
    with individual:
        account = read_own_account(individual, person=keenest, areas_visited=data.areas_visited[keenest])
    return DemoReport(
        dataset=DATASET,
        guarantee=dataset.guarantee,
        budget_rho=dataset.budget_rho,
        worst_case_rho=charge_rho,
        sigma=asked[0][1].sigmas[0],
        grid=asked[0][1].grids[0],
        results=area_results(asked, ledger=ledger, truth=data.visitors),
        budgets=budgets_of(budgets, next_charge_rho=charge_rho),
        account=account,
        keys=keys,
    )


def _write(report: DemoReport, out_dir: Path) -> DemoReport:
    files = {
        "picture": out_dir / "web-visits.png",
        "table": out_dir / "web-visits.csv",
        "report": out_dir / "web-visits.json",
    }
    draw(report, files["picture"])
    write_csv(report, files["table"])
    write_json(report, files["report"])
    return replace(report, files=files)


def _keenest(data: WebVisits) -> str:
    """The person who visited the most areas, and whose budget therefore ends first."""
    return data.areas_visited.most_common(1)[0][0]


@contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[Area, Answer], None]]:
    """Show the latest answer while the queries are asked; show nothing if the output is no terminal."""
    columns = (TextColumn("Asking"), BarColumn(bar_width=30), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)

        def heard(area: Area, answer: Answer) -> None:
            progress.update(task, advance=1, description=f"{area.title}: {answer.value:,.0f}")

        yield heard


def _standard_output() -> Console:
    # A terminal that cannot show a bar should show a query mark, not a traceback.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False)
