"""Are rows cut into statements within both limits, and values packed as the driver would?"""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra.cqltypes import lookup_casstype
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.store import cassandra_statements as made


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 7), st.integers(1, 100))
def test_chunks_keep_the_order_and_both_limits(sizes: list[int], rows_max: int, bytes_max: int) -> None:
    rows = list(enumerate(sizes))
    found = list(made.chunks(rows, sizes, rows_max, bytes_max))
    assert [row for chunk in found for row in chunk] == rows
    for chunk in found:
        assert 1 <= len(chunk) <= rows_max
        assert len(chunk) == 1 or sum(size for _, size in chunk) <= bytes_max
    for chunk, following in pairwise(found):
        assert len(chunk) == rows_max or sum(size for _, size in [*chunk, following[0]]) > bytes_max


@pytest.mark.parametrize(
    ("type_", "value", "packed"),
    [
        ("LongType", -5, made.bigint_value(-5)),
        ("Int32Type", 70_000, made.int_value(70_000)),
        ("ShortType", -1, made.smallint_value(-1)),
        ("UTF8Type", "größe", made.text_value("größe")),
        ("BooleanType", True, made.boolean_value(value=True)),
        ("BooleanType", False, made.boolean_value(value=False)),
        ("ListType(UTF8Type)", ["a", "", "ö"], made.list_value([b"a", b"", "ö".encode()])),
        ("ListType(ShortType)", [], made.list_value([])),
        ("TupleType(LongType, LongType)", (3, -4), made.pair_value(3, -4)),
    ],
)
def test_values_are_packed_as_the_driver_packs_them(type_: str, value: Any, packed: bytes) -> None:
    assert lookup_casstype(type_).serialize(value, 5) == packed


def prepared() -> Any:
    return SimpleNamespace(
        retry_policy=None,
        consistency_level=None,
        serial_consistency_level=None,
        fetch_size=7,
        custom_payload=None,
        is_idempotent=False,
        column_metadata=[SimpleNamespace(keyspace_name="minutes")],
        routing_key_indexes=[0],
        query_id=b"id",
    )


def test_a_batch_of_one_is_no_batch() -> None:
    assert made.batch(prepared(), [[b"1", b"a"]]).values == [b"1", b"a"]


def test_a_batch_carries_all_rows_and_the_partition_that_they_go_to() -> None:
    together = made.batch(prepared(), [[b"1", b"a"], [b"1", b"b"]])
    assert together._statements_and_parameters == [(True, b"id", [b"1", b"a"]), (True, b"id", [b"1", b"b"])]
    assert (together.routing_key, together.keyspace) == (b"1", "minutes")


def test_a_statement_may_have_a_fetch_size_of_its_own() -> None:
    assert made.packed(prepared(), [b"1"]).fetch_size == 7
    assert made.packed(prepared(), [b"1"], fetch_size=50).fetch_size == 50
