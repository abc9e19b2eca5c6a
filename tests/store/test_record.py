from struct import error

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.store.record import (
    HEAD,
    NO_HEADERS,
    Filed,
    Headers,
    Options,
    Retry,
    decode_headers,
    decode_options,
    encode_headers,
    encode_options,
    fence_of,
    pack,
    unpack,
    with_fence,
)
from msgspec.structs import replace

pytestmark = pytest.mark.pure

fences = st.integers(0, (1 << 64) - 1)
names = st.text(st.characters(codec="utf-8"), max_size=60)
filed = st.builds(
    Filed,
    fence=fences,
    origin=st.integers(0, (1 << 63) - 1),
    attempt=st.integers(0, (1 << 16) - 1),
    priority=st.integers(1, 3),
    expires_ms=st.integers(0, 253_402_300_799_999),
    key=names.map("acme/{}".format),
    queue=names.filter(lambda name: len(name.encode()) <= 64),
    options=st.binary(max_size=300),
    headers=st.binary(max_size=300),
    payload=st.binary(max_size=300),
)
PLAIN = Filed(7, 8, 1, 2, 0, "acme/1", "mail", b"", NO_HEADERS, b"{}")


@given(filed)
def test_a_record_comes_apart_as_it_was_put_together(one: Filed) -> None:
    record = pack(one)
    assert unpack(record) == one
    assert fence_of(record) == one.fence
    assert unpack(record).tenant == "acme"


@given(filed, fences)
def test_another_fence_changes_nothing_but_the_fence(one: Filed, fence: int) -> None:
    assert unpack(with_fence(pack(one), fence)) == replace(one, fence=fence)
    assert with_fence(pack(one), one.fence) == pack(one)


def test_the_head_is_as_small_as_its_picture_says() -> None:
    assert HEAD.size == 37
    record = pack(replace(PLAIN, payload=b"x" * 65_536))
    assert record[:1] == b"\1"
    assert record[37:47] == b"acme/1mail"
    assert len(record) == 37 + 10 + len(NO_HEADERS) + 65_536


@pytest.mark.parametrize(
    "changes",
    [
        {"attempt": 1 << 16},
        {"attempt": -1},
        {"key": "k" * (1 << 16)},
        {"queue": "q" * 256},
        {"options": bytes(1 << 16)},
        {"fence": 1 << 64},
        {"origin": 1 << 63},
    ],
)
def test_what_does_not_fit_its_field_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(error):
        pack(replace(PLAIN, **changes))


@given(
    st.builds(
        Options,
        max_attempts=st.integers(1, 1 << 31),
        timeout_ms=st.integers(0, 1 << 53),
        starts=st.integers(0, 1 << 31),
        retry=st.builds(
            Retry, base_ms=st.integers(0, 1 << 40), factor=st.floats(1, 100), cap_ms=st.integers(0, 1 << 40)
        ),
        receipt=st.none() | names,
    )
)
def test_options_come_back(options: Options) -> None:
    assert decode_options(encode_options(options)) == options


def test_options_that_nobody_set_take_one_byte() -> None:
    assert len(encode_options(Options())) == 1


@given(st.lists(st.tuples(names, st.none() | st.binary(max_size=40)), max_size=5).map(tuple))
def test_headers_come_back_in_their_order(headers: Headers) -> None:
    assert decode_headers(encode_headers(headers)) == headers
