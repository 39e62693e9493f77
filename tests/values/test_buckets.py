"""Token buckets."""

from tasuki.values.buckets import Bucket


def test_a_bucket_is_full_at_first_and_fills_again() -> None:
    bucket = Bucket(3, 2)
    assert [bucket.take(1_000) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(1_400)
    assert bucket.take(1_500)
    assert not bucket.take(1_600)
    assert [bucket.take(60_000) for _ in range(4)] == [True, True, True, False]


def test_a_clock_that_goes_back_fills_nothing() -> None:
    bucket = Bucket(1, 1)
    assert bucket.take(10_000)
    assert not bucket.take(5_000)
    assert bucket.take(6_000)
