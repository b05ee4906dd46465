"""The system's words: uniform, fresh in every call and in every process."""

import multiprocessing
from multiprocessing.connection import Connection

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from service.core.noise import Entropy, rounded_gaussian
from service.store.entropy import FEW, system_entropy
from tests.core.injected import seeded


@pytest.mark.parametrize("count", [0, 1, 2, FEW, FEW + 1, 2**16, 2**16 + 1, 2**17])
def test_words_are_as_many_as_asked_for(count: int) -> None:
    """From the kernel, from the cipher, and also beyond the size that is kept ready."""
    words = system_entropy(count)

    assert words.shape == (count,)
    assert words.dtype == np.uint64
    assert np.unique(words).size == count


def test_a_negative_count_is_refused() -> None:
    """It would otherwise be a slice from the end."""
    with pytest.raises(ValueError, match="count"):
        system_entropy(-1)


def bit_p_value(words: NDArray[np.uint64]) -> float:
    """The least p-value of the frequencies of the 64 bits, times 64."""
    bits = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1)
    ones = bits.sum(axis=0, dtype=np.int64)
    return 64 * float(stats.binomtest(int(ones[np.abs(ones - words.size / 2).argmax()]), words.size).pvalue)


@pytest.mark.parametrize("at_once", [FEW, 2**18])
def test_every_bit_is_one_half_the_time(at_once: int) -> None:
    """A quarter of a million words; the same test rejects words with a bit that is set two per cent too often."""
    words = np.concatenate([system_entropy(at_once) for _ in range(2**18 // at_once)])

    assert bit_p_value(words) > 1e-9
    biased = words | (np.arange(words.size) % 25 == 0).astype(np.uint64)
    assert bit_p_value(biased) < 1e-12


def noise_after_fork(entropy: Entropy, count: int) -> list[bytes]:
    """The `count` draws of this process and of two forks of it, after the source has been in use."""
    rounded_gaussian(count, 1e6, entropy)
    fork = multiprocessing.get_context("fork")
    drawn = []
    for _ in range(2):
        here, there = fork.Pipe(duplex=False)
        child = fork.Process(target=_send_noise, args=(there, entropy, count))
        child.start()
        drawn.append(here.recv_bytes())
        child.join()
    return [*drawn, rounded_gaussian(count, 1e6, entropy).tobytes()]


def _send_noise(pipe: Connection, entropy: Entropy, count: int) -> None:
    pipe.send_bytes(rounded_gaussian(count, 1e6, entropy).tobytes())


@pytest.mark.parametrize("count", [2, 2 * FEW])
def test_no_two_processes_share_noise_after_a_fork(count: int) -> None:
    """A generator with a state of its own would repeat itself in every fork, and does: the same check finds it out."""
    assert len(set(noise_after_fork(system_entropy, count))) == 3
    assert len(set(noise_after_fork(seeded(41), count))) == 1
