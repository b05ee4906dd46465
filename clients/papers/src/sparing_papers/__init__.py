"""The figures and tables of the papers that the service is built from, made anew: `python -m sparing_papers`.

There are several modules for each paper, such as koskela.py and feldman_zrnic.py. A figure is a table of numbers, which
equal seeds make equal bit by bit, and a drawing of that table. Budgets come from the service's own accounting. Answers
are counted through a running service. Gradient descent, which the papers run many times over, runs in this process.
"""

from sparing_papers.figure import PaperFigure, Request, Table

__all__ = ["PaperFigure", "Request", "Table"]
