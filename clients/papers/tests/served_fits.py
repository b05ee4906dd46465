"""A fit through a service of a process of its own: a service changes the signals of the process that it runs in."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from sparing_papers.counted import served
from sparing_papers.koskela_served import ServedFit, fit_through_service
from sparing_papers.tabular import People
from tests.waiting import PATIENCE_S

__all__ = ["fit_elsewhere"]


def fit_elsewhere(people: People, *, certified: int, clip: float) -> ServedFit:
    """The fit of these people."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as elsewhere:
        return elsewhere.submit(_fit, people, certified, clip).result(timeout=PATIENCE_S)


def _fit(people: People, certified: int, clip: float) -> ServedFit:
    with served() as found:
        return fit_through_service(found, people, certified=certified, clip=clip)
