"""Sparing's server: it answers linear queries about individuals and spends each individual's privacy sparingly."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded: products run beside the event loop
