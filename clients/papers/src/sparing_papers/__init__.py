"""The figures and tables of the papers that the service is built from, made anew: `python -m sparing_papers`.

One module for each paper: koskela.py and feldman_zrnic.py. A figure is a table of numbers that equal seeds make equal
bit by bit, and a drawing of that table. Budgets are those of the service's own accounting; answers are counted through
a running service; gradient descent, which the papers run many times over, runs in this process.
"""

from sparing_papers.figure import PaperFigure, Request, Table

__all__ = ["PaperFigure", "Request", "Table"]
