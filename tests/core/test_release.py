"""One round of the filter: the exact sum over the active set, plus noise, and the charges of exactly that set."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.accounting.laplace_prices import laplace_prices_of
from service.arrays import exact_sum
from service.core.charge import UNITS_PER_RHO
from service.core.laplace import laplace_charge_units, laplace_worst_case_units
from service.core.laws import Gaussian, Laplace
from service.core.noise import Entropy, rounded_gaussian
from service.core.release import Contributions, QueryTerms, Release
from service.core.release import answer as answer_with
from service.core.renyi_filter import Accounts, Touched
from tests.core.contributions import as_stretch, of_numbers, of_one_number, refuse_unsound, row
from tests.core.injected import seeded
from tests.core.releases import answer, charged_in, charges_in, left_out_in, norms_squared_in, touched_in

NORM_SQUARED_MAX = 2**62

Vector = dict[int, int]  # coordinate to value


def block_of(vectors: dict[int, Vector], dimension: int) -> Contributions:
    """The vectors of some slots as the core takes them; zero vectors belong to no individual."""
    people = {slot: vector for slot, vector in sorted(vectors.items()) if any(vector.values())}
    entries = [(owner, *entry) for owner, vector in enumerate(people.values()) for entry in vector.items()]
    block = Contributions(
        touched=Touched(row(*people)),
        norms_squared=row(*(sum(value**2 for value in vector.values()) for vector in people.values())),
        dimension=dimension,
        owners=row(*(owner for owner, _, _ in entries)),
        coordinates=row(*(coordinate for _, coordinate, _ in entries)),
        values=row(*(value for _, _, value in entries)),
    )
    refuse_unsound(block)
    return block


def accounts_of(limits: Iterable[int], spent: Iterable[int] | None = None) -> Accounts:
    """Accounts with these limits, nothing spent unless said."""
    limit = row(*limits)
    nobody = np.zeros(limit.shape, dtype=np.bool_)
    return Accounts.of(spent=np.zeros_like(limit) if spent is None else row(*spent), limits=limit, paused=nobody)


def charge_of(norm_squared: int, sigma: float) -> int:
    """The exact ceiling, by the definition."""
    return math.ceil(Fraction(norm_squared * UNITS_PER_RHO) / (2 * Fraction(sigma) ** 2))


def ask(
    accounts: Accounts,
    blocks: Iterable[Contributions],
    sigma: float,
    *,
    dimension: int = 1,
    seed: int = 0,
    dropped: NDArray[np.uint8] | None = None,
    shortens: bool = False,
) -> Release:
    """The answer, whose charges are debited; norms may be anything, and those `dropped` (n,) are out for good."""
    return answer(
        blocks,
        accounts,
        QueryTerms(dimension=dimension, law=Gaussian(sigma), norm_squared_max=NORM_SQUARED_MAX, shortens=shortens),
        entropy=seeded(seed),
        dropped=None if dropped is None else lambda touched: dropped[touched.index],
    )


def told_by(release: Release) -> list[list[int]]:
    """All that a release says, as lists."""
    arrays = release.values, touched_in(release), charged_in(release), norms_squared_in(release)
    return [*(array.tolist() for array in arrays), [release.charged_count, release.left_out_count]]


@dataclass(frozen=True, kw_only=True)
class World:
    """A population with its accounts, and a query to it."""

    vectors: dict[int, Vector]
    spent: list[int]
    limit: list[int]
    dimension: int
    sigma: float
    page: int

    def blocks(self, page: int) -> list[Contributions]:
        """The population by pages of so many slots."""
        starts = range(0, len(self.spent), page)
        pages = [{slot: self.vectors[slot] for slot in range(s, s + page) if slot in self.vectors} for s in starts]
        return [block_of(vectors, self.dimension) for vectors in pages]

    def accounts(self) -> Accounts:
        """The accounts, fresh."""
        return accounts_of(self.limit, self.spent)

    def charge(self, slot: int) -> int:
        """The charge of an individual."""
        return charge_of(sum(value**2 for value in self.vectors[slot].values()), self.sigma)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Up to a dozen people; limits about the size of their charges, so that many are at equality or a unit off."""
    count, dimension = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    sigma = draw(st.one_of(st.sampled_from([0.3, 1.0, 8.0, 100.0]), st.floats(0.3, 2.0**20)))
    values = st.one_of(st.integers(-2, 2), st.integers(-(2**20), 2**20))
    vector = st.dictionaries(st.integers(0, dimension - 1), values, max_size=dimension)
    vectors = {slot: drawn for slot in range(count) if any((drawn := draw(vector)).values())}
    world = World(
        vectors=vectors,
        spent=[0] * count,
        limit=[0] * count,
        dimension=dimension,
        sigma=sigma,
        page=draw(st.integers(1, 5)),
    )
    for slot in vectors:
        world.spent[slot] = draw(st.integers(0, 2**50))
        world.limit[slot] = min(2**61, world.spent[slot] + world.charge(slot) + draw(st.integers(-1, 1)))
    return world


@given(worlds(), st.integers(0, 2**32))
def test_the_answer_less_its_noise_is_the_sum_over_the_active_set(world: World, seed: int) -> None:
    """Sum, charged, charges and left out, all against Python's integers; exactly the charges are debited."""
    accounts = world.accounts()
    can_pay = [slot for slot in world.vectors if world.spent[slot] + world.charge(slot) <= world.limit[slot]]

    release = ask(accounts, world.blocks(world.page), world.sigma, dimension=world.dimension, seed=seed)

    noise = rounded_gaussian(world.dimension, world.sigma, seeded(seed))
    exact = [sum(world.vectors[slot].get(place, 0) for slot in can_pay) for place in range(world.dimension)]
    assert (release.values - noise).tolist() == exact
    charges = {slot: world.charge(slot) for slot in can_pay}
    assert charged_in(release).tolist() == can_pay
    assert charges_in(release, world.sigma).tolist() == list(charges.values())
    assert left_out_in(release).tolist() == [slot for slot in world.vectors if slot not in can_pay]
    assert accounts.spent.tolist() == [spent + charges.get(slot, 0) for slot, spent in enumerate(world.spent)]
    counts = release.charged_count, release.left_out_count, release.charged_units
    assert counts == (len(can_pay), len(world.vectors) - len(can_pay), sum(charges.values()))


@given(worlds())
def test_no_other_account_changes_when_an_individual_is_missing(world: World) -> None:
    """Separability: without one individual all others are charged the same, and the sum loses that one's vector."""
    for missing in world.vectors:
        others = replace(world, vectors={s: v for s, v in world.vectors.items() if s != missing})
        here, gone = (ask(w.accounts(), w.blocks(4), w.sigma, dimension=w.dimension, seed=1) for w in (world, others))
        charged = charged_in(here)
        took_part, kept = missing in charged.tolist(), charged != missing
        assert charged_in(gone).tolist() == charged[kept].tolist()
        assert charges_in(gone, world.sigma).tolist() == charges_in(here, world.sigma)[kept].tolist()
        lost = [world.vectors[missing].get(place, 0) * took_part for place in range(world.dimension)]
        assert (here.values - gone.values).tolist() == lost


@given(worlds(), st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)), st.integers(0, 2**32))
def test_under_the_clip_rule_everyone_gives_what_is_left(
    world: World, paused: set[int], gone: set[int], seed: int
) -> None:
    """The whole vector where it fits, else one in its direction that uses what is left, but for the stated bound.

    The sum is that of what was counted; each is charged for that; paused ones and those out for good give nothing.
    """
    accounts, size = world.accounts(), len(world.spent)
    accounts.paused[[slot for slot in paused if slot < size]] = True
    dropped = np.array([slot in gone for slot in range(size)], dtype=np.uint8)
    blocks = world.blocks(world.page)
    release = ask(accounts, blocks, world.sigma, dimension=world.dimension, seed=seed, dropped=dropped, shortens=True)

    counted = norms_squared_by_slot(release)
    left = [limit - spent for limit, spent in zip(world.limit, world.spent, strict=True)]
    left_out = set(left_out_in(release).tolist())
    for slot, vector in world.vectors.items():
        whole, norm = sum(value**2 for value in vector.values()), counted[slot]
        spent = int(accounts.spent[slot]) - world.spent[slot]
        assert spent == charge_of(norm, world.sigma) <= max(left[slot], 0)
        assert (norm == 0) == (slot in left_out)
        if slot in paused or slot in gone:
            assert norm == 0
        elif world.charge(slot) <= left[slot]:
            assert norm == whole
        else:
            unused = Fraction(left[slot] - spent - 1, UNITS_PER_RHO)
            bound_squared = 2 * Fraction(left[slot], UNITS_PER_RHO) * len(vector) / Fraction(world.sigma) ** 2
            assert norm < whole
            assert unused <= 0 or unused**2 <= bound_squared
    norms_before = [block.norms_before for block in release.blocks if block.norms_before is not None]
    assert np.concatenate(norms_before).tolist() == [
        sum(v**2 for v in vector.values()) for vector in world.vectors.values()
    ]
    assert not release.one_norm
    noise = rounded_gaussian(world.dimension, world.sigma, seeded(seed))
    alone = np.zeros(world.dimension, dtype=np.int64)
    for slot, vector in world.vectors.items():
        if slot in paused or slot in gone:
            continue
        own = block_of({slot: vector}, world.dimension)
        part = ask(world.accounts(), [own], world.sigma, dimension=world.dimension, seed=seed, shortens=True).values
        assert sum(value**2 for value in (part - noise).tolist()) == counted[slot]
        alone += part - noise
    assert (release.values - noise).tolist() == alone.tolist()


@pytest.mark.parametrize("shortens", [False, True], ids=["skip", "clip"])
@given(worlds(), st.integers(0, 3), st.integers(1, 12))
def test_the_form_and_the_size_of_blocks_change_nothing(shortens: bool, world: World, before: int, page: int) -> None:
    """Integers add in any grouping; a stretch gives what a list gives, whatever else its places hold."""
    told = []
    stretches = [as_stretch(block, before=before) for block in world.blocks(len(world.spent))]
    for blocks in (world.blocks(world.page), world.blocks(page), stretches):
        accounts = world.accounts()
        release = ask(accounts, blocks, world.sigma, dimension=world.dimension, seed=2, shortens=shortens)
        told.append([*told_by(release), accounts.spent.tolist()])
    assert told[0] == told[1] == told[2]


@given(worlds())
def test_no_other_vector_is_shortened_otherwise_when_an_individual_is_missing(world: World) -> None:
    """Separability under the clip rule."""
    for missing in world.vectors:
        others = replace(world, vectors={s: v for s, v in world.vectors.items() if s != missing})
        here, gone = (
            norms_squared_by_slot(ask(w.accounts(), w.blocks(4), w.sigma, dimension=w.dimension, shortens=True))
            for w in (world, others)
        )
        assert {slot: norm for slot, norm in here.items() if slot != missing} == gone


def test_an_individual_of_a_count_gives_the_fraction_that_it_can_pay() -> None:
    """One that has a quarter of a charge left counts half; one with nothing left is out; the others count whole."""
    step, charge = 2**20, UNITS_PER_RHO // 2
    accounts = accounts_of([charge, charge // 4, 0])
    release = ask(accounts, [of_one_number(range(3), step)], float(step), shortens=True)
    exact = (release.values - rounded_gaussian(1, float(step), seeded(0))).tolist()
    assert exact == [step + step // 2]
    assert norms_squared_in(release).tolist() == [step**2, step**2 // 4, 0]
    assert (release.one_norm, left_out_in(release).tolist(), accounts.room.tolist()) == (False, [2], [0, 0, 0])


def norms_squared_by_slot(release: Release) -> dict[int, int]:
    """The counted norm of each touched slot."""
    return dict(zip(touched_in(release).tolist(), norms_squared_in(release).tolist(), strict=True))


def test_the_five_people_are_all_exhausted_by_the_third_query_under_clip() -> None:
    """On a grid of 2^-20 none has more left than the bound for two entries and a unit, and the first is whole."""
    step, fiftieth = 2**20, UNITS_PER_RHO // 32
    limits = [fiftieth] * 4 + [2 * fiftieth]
    accounts = accounts_of(limits)
    rounds = [
        (8.0, [(1, 0), (2, 0), (1, 0), (3, 0), (3, 0)]),
        (8.0, [(1, 0), (1, 0), (1, 0), (1, 0), (1, 0)]),
        (4.0, [(1, 0), (0, 0), (1, 0), (1, 0), (2, 0)]),
    ]
    for sigma, vectors in rounds:
        fine = {slot: {n: value * step for n, value in enumerate(vector)} for slot, vector in enumerate(vectors)}
        ask(accounts, [block_of(fine, 2)], sigma * step, dimension=2, shortens=True)
    left = (accounts.limits - accounts.spent).tolist()
    for units, limit in zip(left, limits, strict=True):
        assert units <= UNITS_PER_RHO * math.sqrt(2 * limit / UNITS_PER_RHO * 2) / (4.0 * step) + 1


@pytest.mark.parametrize("rule", [0, 1], ids=["skip", "drop"])
def test_the_worked_example_of_five_people(rule: int) -> None:
    """Limits 2, 2, 2, 2, 4 hundredths and sigma^2 = 100, 100, 25, 100, 400, 100, all sigmas and limits scaled by 8/10.

    The scale makes every charge a whole number of units, so that equality occurs where the fractions have it: for
    person 2 at the first query, for 1 at the fourth, for 3 and 4 at the fifth. Under the drop rule the fourth and the
    fifth person are out after the first query, the second after the second, and the others after the third.
    """
    fiftieth = UNITS_PER_RHO // 32
    gone = np.zeros(5, dtype=np.uint8)
    accounts = accounts_of([fiftieth] * 4 + [2 * fiftieth])
    rounds = [
        (8.0, [(1, 0), (2, 0), (1, 0), (3, 0), (3, 0)], ("11100", "11100")),
        (8.0, [(1, 0), (1, 0), (1, 0), (1, 0), (1, 0)], ("10111", "10100")),
        (4.0, [(1, 0), (0, 0), (1, 0), (1, 0), (2, 0)], ("01000", "01000")),  # the second adds nothing
        (8.0, [(1, 1), (1, 0), (1, 0), (1, 1), (1, 0)], ("10111", "00000")),
        (16.0, [(1, 0), (1, 0), (2, 0), (2, 0), (2, 0)], ("00111", "00000")),
        (8.0, [(1, 0), (1, 0), (1, 0), (1, 0), (1, 1)], ("00001", "00000")),
    ]

    for sigma, vectors, active in rounds:
        block = block_of({slot: dict(enumerate(vector)) for slot, vector in enumerate(vectors)}, 2)
        release = ask(accounts, [block], sigma, dimension=2, dropped=gone if rule else None)

        left_out = left_out_in(release).tolist()
        gone[left_out] += 1
        assert "".join("0" if slot in left_out else "1" for slot in range(5)) == active[rule]
        paid = [vectors[slot] for slot in charged_in(release).tolist()]
        exact = [sum(vector[place] for vector in paid) for place in range(2)]
        assert (release.values - rounded_gaussian(2, sigma, seeded(0))).tolist() == exact

    spent = [fiftieth, fiftieth, fiftieth, fiftieth, fiftieth * 5 // 4]
    assert accounts.spent.tolist() == ([fiftieth // 2, fiftieth, fiftieth // 2, 0, 0] if rule else spent)


@given(st.integers(1, 40), st.integers(1, 2**40), st.floats(0.3, 2.0**32), st.integers(0, 1))
def test_a_limit_of_k_charges_buys_exactly_k_answers(k: int, value: int, sigma: float, missing: int) -> None:
    """Not k - 1, as a charge with a safety factor would; and one unit less buys k - 1."""
    value = min(value, int(sigma * 2**7), 2**31)
    block = block_of({0: {0: max(1, value)}}, 1)
    charge = charge_of(int(block.norms_squared[0]), sigma)
    accounts = accounts_of([k * charge - missing])

    answered = [ask(accounts, [block], sigma).charged_count for _ in range(k + 2)]

    assert answered == [1] * (k - missing) + [0] * (2 + missing)


def test_a_count_over_pages_has_one_norm() -> None:
    """All charges equal: a view of one norm, for every set left out."""
    accounts = accounts_of([10**9] * 3 + [0] + [10**9] * 4)

    release = ask(accounts, [of_one_number(range(3)), of_one_number(range(3, 8))], 100.0, seed=3)

    assert charged_in(release).tolist() == [0, 1, 2, 4, 5, 6, 7]
    assert left_out_in(release).tolist() == [3]
    assert accounts.spent.tolist() == [54975582] * 3 + [0] + [54975582] * 4
    assert release.charged_units == 7 * 54975582
    assert all(block.norms_squared.strides == (0,) for block in release.blocks)
    assert release.one_norm
    assert (release.values - rounded_gaussian(1, 100.0, seeded(3))).tolist() == [7]


@pytest.mark.parametrize("pages", [[[0, 1], []], [[], [2]], [[], []], [[3]], [[]]])
def test_a_count_has_one_norm_however_few_it_touches(pages: list[list[int]]) -> None:
    """With no individual, one or several, the form of a release is the query's."""
    release = ask(accounts_of([10**9] * 4), [of_one_number(page) for page in pages], 100.0, seed=3)

    assert release.one_norm
    assert release.charged_units == 54975582 * sum(map(len, pages))


@pytest.mark.parametrize("order", [1, -1])
def test_a_release_has_one_norm_if_all_its_blocks_do(order: int) -> None:
    """The first and the last are two of them."""
    blocks = [of_one_number([0]), replace(of_one_number([0]), one_norm=False)][::order]
    blocks = [replace(block, touched=Touched(row(slot))) for slot, block in enumerate(blocks)]

    assert not ask(accounts_of([10**9] * 2), blocks, 100.0).one_norm
    assert ask(accounts_of([10**9] * 2), [replace(block, one_norm=True) for block in blocks], 100.0).one_norm


@pytest.mark.parametrize("numbers", [(2, 2), (2, 1), (2,), ()])
def test_norms_that_are_equal_by_chance_are_not_one(numbers: tuple[int, ...]) -> None:
    """A sum's norms are a number for each individual, also where all are equal, or only one is there, or none."""
    release = ask(accounts_of([2**40] * 2), [of_numbers(range(len(numbers)), numbers)], 100.0, seed=3)

    assert not release.one_norm
    assert charges_in(release, 100.0).tolist() == [{2: 219902326, 1: 54975582}[number] for number in numbers]


@pytest.mark.parametrize(("largest", "width"), [(255, 1), (256, 2), (2**16, 4), (2**32, 8), (2**62, 8)])
def test_norms_are_as_wide_as_the_largest_needs(largest: int, width: int) -> None:
    """The width is a fact of the query, whatever norms there are."""
    block = block_of({0: {0: 2}, 3: {0: 1}}, 1)

    terms = QueryTerms(dimension=1, law=Gaussian(9.0), norm_squared_max=largest)
    release = answer([block], accounts_of([2**40] * 4), terms, entropy=seeded(3))

    (told,) = release.blocks
    assert (told.norms_squared.dtype.itemsize, told.norms_squared.tolist()) == (width, [4, 1])


def test_a_norm_above_the_largest_is_refused() -> None:
    """It would be stored as another one."""
    with pytest.raises(ValueError, match="above the largest"):
        answer(
            [block_of({0: {0: 16}}, 1)],
            accounts_of([2**40]),
            QueryTerms(dimension=1, law=Gaussian(9.0), norm_squared_max=255),
            entropy=seeded(3),
        )


@pytest.mark.parametrize("blocks", [[], [of_one_number([])]])
def test_a_query_without_touched_individuals_is_pure_noise(blocks: list[Contributions]) -> None:
    """It has the law, shape and support of any other answer; no individual is charged."""
    release = ask(accounts_of([1]), blocks, 5.0, seed=4)

    assert release.values.tolist() == rounded_gaussian(1, 5.0, seeded(4)).tolist()
    assert (release.charged_count, release.left_out_count, release.charged_units) == (0, 0, 0)


def test_an_answer_with_all_budgets_exhausted_is_pure_noise_too() -> None:
    """Never a refusal: it would tell spent totals."""
    release = ask(accounts_of([0, 0]), [of_one_number([0, 1])], 5.0, seed=4)

    assert release.values.tolist() == rounded_gaussian(1, 5.0, seeded(4)).tolist()
    assert left_out_in(release).tolist() == [0, 1]
    assert release.charged_units == 0


@given(st.lists(st.integers(0, 2**62), max_size=5))
@example([2**62] * 3)
def test_units_are_added_exactly(units: list[int]) -> None:
    """Many near 2^62 do not fit 64 bits."""
    assert exact_sum(row(*units)) == sum(units)


@pytest.mark.parametrize("second", [[1, 2], [0], [2]])
def test_blocks_that_overlap_or_come_out_of_order_are_refused(second: list[int]) -> None:
    """An individual in two blocks would be admitted twice on one balance, whatever is between the two."""
    for between in ([], [of_one_number([])], [of_one_number([]), of_one_number([])]):
        with pytest.raises(ValueError, match="blocks"):
            ask(accounts_of([9] * 4), [of_one_number([1, 2]), *between, of_one_number(second)], 1.0)


def test_a_block_of_another_dimension_is_refused() -> None:
    """It belongs to another query."""
    with pytest.raises(ValueError, match="dimension"):
        ask(accounts_of([9, 9]), [of_one_number([1])], 1.0, dimension=2)


@pytest.mark.parametrize(("dimension", "sigma"), [(1, 0.1), (0, 1.0), (1, math.nan)])
def test_values_out_of_range_are_refused_before_any_contribution_is_read(dimension: int, sigma: float) -> None:
    """A refusal may depend on public numbers only, so it comes before the data."""
    looked_at = []

    def blocks() -> Iterator[Contributions]:
        looked_at.append(0)
        yield of_one_number([0])

    with pytest.raises(ValueError, match=r"sigma_steps|count"):
        ask(accounts_of([9]), blocks(), sigma, dimension=dimension)

    assert looked_at == []


def test_noise_is_fresh_in_every_answer() -> None:
    """The words are consumed, not reused: the same query twice on one source differs."""
    entropy: Entropy = seeded(7)
    terms = QueryTerms(dimension=8, law=Gaussian(1e6), norm_squared_max=1)
    one, other = (answer([], accounts_of([1]), terms, entropy=entropy).values.tolist() for _ in range(2))

    assert one != other


@pytest.mark.parametrize("noise", [np.zeros(2, np.int64), np.zeros(1, np.int32), np.zeros((1, 1), np.int64)])
def test_noise_of_another_shape_or_type_is_refused(noise: NDArray[np.int64]) -> None:
    """Before any block is read or charged."""
    accounts, blocks = accounts_of([2**40]), iter([block_of({0: {0: 1}}, 1)])
    terms = QueryTerms(dimension=1, law=Gaussian(10.0), norm_squared_max=NORM_SQUARED_MAX)
    with pytest.raises(ValueError, match="one int64 of noise for each coordinate"):
        answer_with(blocks, accounts, terms, noise=noise)
    assert len(list(blocks)) == 1
    assert accounts.spent.tolist() == [0]


@pytest.mark.parametrize("name", ["gdp", "zcdp", "pure"])
def test_laplace_noise_is_charged_by_its_own_prices(name: str) -> None:
    """Each that can pay is charged the price of |v| / b for its one number, and these numbers are summed."""
    prices, scale = laplace_prices_of(name), 100.0
    numbers = row(1, -30, 7, 100, 99)
    charges = laplace_charge_units(numbers**2, scale, prices, norm_squared_max=10**4)
    accounts = accounts_of(charges - np.array([0, 0, 0, 0, 1]))  # each can pay exactly, but the last
    block = of_numbers(range(5), numbers)
    terms = QueryTerms(dimension=1, law=Laplace.priced(scale, name, prices), norm_squared_max=10**4)

    release = answer_with([block], accounts, terms, noise=np.zeros(1, dtype=np.int64))

    assert release.values.tolist() == [1 - 30 + 7 + 100]
    assert accounts.spent.tolist() == [*charges[:4].tolist(), 0]
    assert (release.charged_count, release.left_out_count) == (4, 1)
    assert release.charged_units == int(charges[:4].sum())


def test_a_count_with_laplace_noise_has_one_charge() -> None:
    """It is the same for any number of people, and for none."""
    prices = laplace_prices_of("zcdp")
    for people in (0, 3):
        accounts = accounts_of([2**40] * people)
        terms = QueryTerms(dimension=1, law=Laplace.priced(10.0, "zcdp", prices), norm_squared_max=1)
        noise = np.zeros(1, dtype=np.int64)
        release = answer_with([of_one_number(range(people))], accounts, terms, noise=noise)
        assert release.values.tolist() == [people]
        assert accounts.spent.tolist() == [laplace_worst_case_units(1, 10.0, prices)] * people
