"""Our median is numpy's."""

import numpy as np
import pytest

from klinic.median import median


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_it_is_numpys_median(n):
    values = np.random.default_rng(n).normal(size=(4, n))
    assert median(values) == np.median(values)
    assert median(values[0]) == np.median(values[0])
    assert np.array_equal(median(values, axis=1), np.median(values, axis=1))
    assert np.array_equal(
        median(values, axis=1, keepdims=True), np.median(values, axis=1, keepdims=True)
    )


def test_no_value_has_no_median():
    assert np.isnan(median([]))
