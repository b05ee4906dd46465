"""The operating system's entropy as 64-bit words: the only source of randomness.

A few words are read from the kernel as they are. For many words, a fresh 256-bit key is read from the kernel and
stretched with AES-256 in counter mode. This takes a tenth of the time (loadtests/bench_noise.py). For a few words it is
slower, because every call makes a new cipher. In both cases no state is kept from one call to the next. So two
processes after a fork, or one machine resumed twice from a snapshot, share no words except those of a call that was
running.
"""

import os
from collections.abc import Callable
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

FEW: Final = 256
"""The most words that are read from the kernel itself. A cipher is slower up to about 480 words."""

_KEY_BYTES: Final = 32
_BLOCK_BYTES: Final = 16
_ZEROS: Final = memoryview(bytes(2**19))
_UNCUT_BYTES: Final = 256  # a read of these comes whole, whatever signal comes meanwhile: getrandom(2)
_kernel: Final[Callable[[int], bytes]] = getattr(os, "getrandom", os.urandom)


def system_entropy(count: int) -> NDArray[np.uint64]:
    """`count` fresh uniform 64-bit words, computationally indistinguishable from independent ones; read-only.

    Raises ValueError when count is negative.
    """
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    size = 8 * count
    if count <= FEW:
        # Both read one generator; but `os.urandom` gives up the GIL (`service.arrays`).
        data = _kernel(size) if size <= _UNCUT_BYTES else os.urandom(size)
        return np.frombuffer(data, dtype=np.uint64)
    keystream = Cipher(algorithms.AES(os.urandom(_KEY_BYTES)), modes.CTR(bytes(_BLOCK_BYTES))).encryptor()
    zeros = _ZEROS[:size] if size <= len(_ZEROS) else bytes(size)
    return np.frombuffer(keystream.update(zeros), dtype=np.uint64)
