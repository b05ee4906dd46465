"""The version, also sent with every request."""

__version__ = "0.1.0"
