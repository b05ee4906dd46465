"""Private gradient descent on Poisson samples (DP-SGD) in which each individual is charged for its own gradient.

from sparing.research import PoissonDescent, RenyiFilter, descend

settings = PoissonDescent(
    loss="logistic", l2_clip=1, noise_multiplier=4, sampling_rate=0.05, learning_rate=2, steps=400
)
run = descend(features, labels, settings, seed=1, limit=RenyiFilter(order=12, epsilon=1, delta="1e-5"))
print(run.parameters, run.active[-1], run.spent.max() <= run.budget)

In each step every individual is sampled with probability q, gradients of the sampled are shortened to the clip C, and
noise of standard deviation sigma C is added to each coordinate of their sum. An individual's charge is that of the step
for a vector of its own norm, and it is charged for the chance of being sampled, whether or not it was: which
individuals were sampled is kept nowhere, and nothing that is returned depends on it but through the parameters.

With a filter, individuals whose next charge is more than what they have left are out of that step, sampled or not
(Feldman and Zrnic 2021, Algorithm 2). A filter adds up one number: the Rényi divergence of one order (Theorem 4.5), or
mu^2 / 2 of Gaussian DP (Koskela, Tobaben and Honkela 2023, Theorem 12), which sampling does not make smaller. Charges
are integers of 2^-40, rounded up, and each is a function of that individual's own record and of the parameters, bit by
bit, whatever other rows there are.

A simulation over public data, or the researcher's own, in the researcher's process: no query of the service is sampled
(docs/filters.md). Noise is numpy's, of doubles and from a seed: a seed that others know tells them samples and noise.
It needs `pip install "./clients/python[research]"`, which brings numpy and mpmath.
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
