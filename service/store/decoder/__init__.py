"""Uploads decoded in processes of their own, each under a limit of the kernel."""

from service.store.decoder.process import DecoderProcess

__all__ = ["DecoderProcess"]
