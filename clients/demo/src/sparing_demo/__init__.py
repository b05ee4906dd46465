"""The demo: 294 queries about the visitors of a web site, asked only through the Python client."""

from sparing_demo.demo import run_demo
from sparing_demo.report import DemoReport
from sparing_demo.session import NotTheDemo

__all__ = ["DemoReport", "NotTheDemo", "run_demo"]
