"""`make test` runs a few cases of a large product, with every pair of values. `make nightly` runs all."""

from itertools import combinations, pairwise, product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covering import SMALL, cover, leave_products_to_the_night, spread_over

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def product_of(*sizes):
    return [dict(enumerate_names(values)) for values in product(*(range(size) for size in sizes))]


def enumerate_names(values):
    return ((f"option {place}", value) for place, value in enumerate(values))


def pairs_of(cases):
    return {pair for case in cases for pair in combinations(case.items(), 2)}


@given(SIZES)
def test_every_pair_of_values_is_in_a_chosen_case(sizes):
    cases = product_of(*sizes)
    chosen_cases = [cases[place] for place in cover(cases)]
    assert pairs_of(chosen_cases) == pairs_of(cases)
    assert {value for case in chosen_cases for value in case.items()} == {
        value for case in cases for value in case.items()
    }


def test_few_cases_of_a_large_product_are_chosen():
    assert len(cover(product_of(4, 2, 3, 17))) < 100


@pytest.mark.parametrize("sizes", [(30,), (6, 5)])
def test_all_cases_of_one_list_and_all_pairs_of_two_are_chosen(sizes):
    assert cover(product_of(*sizes)) == list(range(30))


def test_pairs_that_no_case_has_are_not_missed():
    cases = [{"a": number % 3, "b": number % 2, "c": number} for number in range(12)]
    assert cover(cases) == list(range(12))


@given(st.integers(1, 50), st.integers(1, 50))
def test_a_sample_is_spread_from_the_first_case_to_the_last(length, count):
    places = spread_over(length, count)
    assert len(places) == min(length, count) and places[0] == 0
    assert count == 1 or places[-1] == length - 1
    gaps = {end - start for start, end in pairwise(places)}
    assert not gaps or max(gaps) - min(gaps) <= 1


class Case:
    """A case of a test, as pytest collects it."""

    def __init__(self, name, options, *marks):
        self.nodeid = f"tests/test_x.py::{name}[{'-'.join(map(str, options.values()))}]"
        self.callspec = SimpleNamespace(params=options)
        self.marks = [mark.mark for mark in marks]

    def iter_markers(self):
        return iter(self.marks)

    def get_closest_marker(self, name):
        return next((mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, mark):
        self.marks.append(mark.mark)


def kept_of(options, *marks):
    cases = [Case("test_some", case_options, *marks) for case_options in options]
    leave_products_to_the_night(cases)
    return [case for case in cases if not case.get_closest_marker("nightly")]


def test_large_products_leave_cases_to_the_night():
    assert 17 * 4 <= len(kept_of(product_of(4, 2, 3, 17))) < 100
    assert len(kept_of(product_of(2, 3))) == SMALL
    assert len(kept_of(product_of(3, 3, 3), pytest.mark.every_case)) == 27


def test_a_marked_test_keeps_a_sample_of_its_cases():
    kept_cases = kept_of(product_of(9), pytest.mark.sample(3))
    assert [case.callspec.params["option 0"] for case in kept_cases] == [0, 4, 8]


def test_a_test_may_ask_for_each_value_instead_of_each_pair():
    kept_cases = kept_of(product_of(2, 3, 3), pytest.mark.each_value)
    options = [case.callspec.params for case in kept_cases]
    assert len(kept_cases) == 3 and {value for case_options in options for value in case_options.items()} == {
        value for case_options in product_of(2, 3, 3) for value in case_options.items()
    }


def test_true_and_one_are_two_values():
    assert len(kept_of([{"a": value, "b": place} for place in range(5) for value in (True, 1)])) == 10
