from modelyard.admission.bands import BANDS, rank


def test_the_highest_band_comes_first() -> None:
    assert [rank(band) for band in BANDS] == [0, 1, 2]
    assert BANDS[0] == "interactive"


def test_a_band_that_nobody_knows_is_served_last() -> None:
    assert rank("urgent!") == rank("shadow")
