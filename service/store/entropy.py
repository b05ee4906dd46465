"""The operating system's entropy as 64-bit words: the one door through which randomness enters.

Every call draws a fresh 256-bit key from the kernel and stretches it with AES-256 in counter mode, so that no state
lives from one call to the next: two processes after a fork, or one machine resumed twice from a snapshot, share no
words but those of a call under way. Reading all words from the kernel would be safe as well and takes about ten times
as long (loadtests/bench_noise.py).
"""

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

_KEY_BYTES = 32
_BLOCK_BYTES = 16
_ZEROS = memoryview(bytes(2**19))


def system_entropy(count: int) -> NDArray[np.uint64]:
    """`count` fresh uniform 64-bit words, computationally indistinguishable from independent ones; read-only.

    Raises ValueError when count is negative.
    """
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    keystream = Cipher(algorithms.AES(os.urandom(_KEY_BYTES)), modes.CTR(bytes(_BLOCK_BYTES))).encryptor()
    size = 8 * count
    zeros = _ZEROS[:size] if size <= len(_ZEROS) else bytes(size)
    return np.frombuffer(keystream.update(zeros), dtype=np.uint64)
