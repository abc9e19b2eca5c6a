"""How do many rows become few statements?

Rows of one partition go into unlogged batches: up to 100 rows and about a mebibyte, where the cost of a statement no
longer shows and a frame (16 MiB) is far away. Values are packed here as the protocol has them, since the driver's own
binding costs several times more a column: each `…_value` is the wire form of one CQL type.
"""

from collections.abc import Iterator, Sequence
from struct import Struct as Layout
from typing import Any, TypeVar

from cassandra.query import BatchStatement, BatchType, BoundStatement

T = TypeVar("T")

Write = tuple[Any, Sequence[Any]]
"""One write of a conditional batch: the prepared statement and its values."""

ROWS_MAX = 100
BYTES_MAX = 1 << 20

bigint_value = Layout(">q").pack
int_value = Layout(">i").pack
smallint_value = Layout(">h").pack
text_value = str.encode
_pair = Layout(">iqiq").pack


def boolean_value(*, value: bool) -> bytes:
    return b"\1" if value else b"\0"


def list_value(items: Sequence[bytes]) -> bytes:
    """A list of values that are packed already."""
    parts = [int_value(len(items))]
    for item in items:
        parts += int_value(len(item)), item
    return b"".join(parts)


def pair_value(first: int, second: int) -> bytes:
    """A tuple of two bigints."""
    return _pair(8, first, 8, second)


def packed(prepared: Any, values: list[bytes], *, fetch_size: int | None = None) -> Any:
    """The prepared statement with values that are packed already."""
    statement = BoundStatement(prepared)
    statement.values = values
    if fetch_size is not None:
        statement.fetch_size = fetch_size
    return statement


def batch(prepared: Any, rows: Sequence[list[bytes]]) -> Any:
    """One statement that writes these rows of one partition, their values packed already."""
    statement = BoundStatement(prepared)
    if len(rows) == 1:
        statement.values = rows[0]
        return statement
    together = BatchStatement(BatchType.UNLOGGED)
    for values in rows:
        statement.values = values
        together.add(statement)  # it takes the values over; the routing key is the first row's
    return together


def conditional(writes: Sequence[Write]) -> Any:
    """One conditional batch in one partition: all of it is done, or nothing."""
    together = BatchStatement(BatchType.UNLOGGED)
    for prepared, values in writes:
        together.add(prepared.bind(values))
    return together


def chunks(rows: Sequence[T], sizes: Sequence[int], rows_max: int, bytes_max: int) -> Iterator[Sequence[T]]:
    """Runs of rows, each within both limits; a row that is larger by itself stands alone."""
    start, held = 0, 0
    for at, size in enumerate(sizes):
        if at > start and (at - start == rows_max or held + size > bytes_max):
            yield rows[start:at]
            start, held = at, 0
        held += size
    if start < len(rows):
        yield rows[start:]
