"""Private gradient descent on Poisson samples (DP-SGD) in which each individual is charged for its own gradient.

from sparing.research import PoissonDescent, RenyiFilter, descend

settings = PoissonDescent(
    loss="logistic", l2_clip=1, noise_multiplier=4, sampling_rate=0.05, learning_rate=2, steps=400
)
run = descend(features, labels, settings, seed=1, limit=RenyiFilter(order=12, epsilon=1, delta="1e-5"))
print(run.parameters, run.active[-1], run.spent.max() <= run.budget)

In each step, every individual is sampled with probability q. The gradients of sampled individuals are shortened to the
clip C, and noise of standard deviation `noise_multiplier` times C is added to each coordinate of their sum. An
individual is charged for the chance of being sampled, sampled or not: its charge is that of a sampled step with a
vector of its own norm. The samples are not kept, and the result depends on them only through the parameters.

With a filter, an individual whose charge would exceed what it has left is left out of that step, sampled or not
(Feldman and Zrnic 2021, Algorithm 2). A filter adds up one number: the Rényi divergence of one order (Theorem 4.5), or
mu^2 / 2 of Gaussian DP (Koskela, Tobaben and Honkela 2023, Theorem 12), which sampling does not reduce. Charges are
whole multiples of 2^-40, rounded up. Each charge depends on that individual's own record and on the parameters alone:
other rows do not change it in a single bit.

This is a simulation over public data, or over the researcher's own data, in the researcher's process: no query of the
service is sampled (docs/filters.md). The noise is numpy's, in doubles and from a seed. Keep the seed secret, as it
reveals samples and noise. The package needs `pip install "./clients/python[research]"`, which brings numpy and mpmath.
"""

from sparing.research.descent import (
    GaussianFilter,
    Loss,
    PoissonDescent,
    PoissonFilter,
    PoissonRun,
    RenyiFilter,
    descend,
)

__all__ = ["GaussianFilter", "Loss", "PoissonDescent", "PoissonFilter", "PoissonRun", "RenyiFilter", "descend"]
