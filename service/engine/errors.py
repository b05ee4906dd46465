"""The error that stops an evaluation.

BrokenInvariant (RuntimeError)   plan or memory is not what it promises to be
"""


class BrokenInvariant(RuntimeError):
    """The plan or the memory is not what it promises to be: nothing is answered."""
