"""The version of the client, which is also sent with every request."""

__version__ = "0.2.0"
