"""`make bench-compare`: its options, and the interval of the median."""

import numpy as np
import pytest

from bench import compare
from bench.compare import interval


def test_few_ratios_reach_from_the_least_to_the_largest():
    assert interval([1.0, 3.0, 2.0]) == (1.0, 3.0)
    assert interval([1, 2, 3, 4, 5, 6]) == (1, 6)


def test_the_interval_has_the_median_as_often_as_it_says():
    random = np.random.default_rng(1)
    for n in (6, 15, 40):
        held = [low <= 1 <= high for low, high in (interval((2 * random.random(n)).tolist()) for _ in range(2000))]
        assert 0.94 < np.mean(held) < 0.99


@pytest.mark.parametrize("words", [[""], ["no-such-commit"], ["HEAD", "--pairs", "0"], ["HEAD", "--rounds", "0"]])
def test_wrong_options_are_refused_at_once(words, monkeypatch, capfd):
    monkeypatch.setattr("sys.argv", ["compare", *words])
    with pytest.raises(SystemExit) as ended:
        compare.main()
    assert ended.value.code == 2 and "expected" in capfd.readouterr().err
