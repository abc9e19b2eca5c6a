"""Texts and headers that every part of the way can carry."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.command import Code, InvalidTask, Standing
from minutewheel.broker.form import Form, Reader, Sent, check_headers, check_text, made_id
from minutewheel.broker.limits import Limits
from minutewheel.store.position import Log, pack_position

pytestmark = pytest.mark.pure


def acceptable(text: str, limit: int) -> bool:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return False
    printable = not any(unicodedata.category(letter) in {"Cc", "Zl", "Zp"} for letter in text)
    return printable and len(data) <= limit and unicodedata.normalize("NFC", text) == text


@given(st.text(max_size=12), st.integers(0, 16))
def test_a_text_is_taken_if_it_is_composed_printable_and_short(text: str, limit: int) -> None:
    if acceptable(text, limit):
        check_text(text, limit, "id", Code.BAD_ID)
        return
    with pytest.raises(InvalidTask) as raised:
        check_text(text, limit, "id", Code.BAD_ID)
    assert (raised.value.code, raised.value.field) == (Code.BAD_ID, "id")


@pytest.mark.parametrize("text", ["a\n", "\x7f", "\ud800", "\x85", "\u2028", "e\u0301", "\u212b"])
def test_texts_that_would_be_trouble(text: str) -> None:
    with pytest.raises(InvalidTask):
        check_text(text, 99, "id", Code.BAD_ID)


@pytest.mark.parametrize("tenant", ["a\n", "", "a b", "a/b", "x" * 65, "Z\u00fcrich", "\u0430cme", "\uff41"])
def test_tenants_that_are_none(tenant: str) -> None:
    with pytest.raises(InvalidTask) as raised:
        Reader(Limits()).key_of(tenant, "x")
    assert raised.value.code is Code.BAD_TENANT


def test_lone_surrogates_in_header_names_are_refused() -> None:
    with pytest.raises(InvalidTask) as raised:
        check_headers((("\ud800", b""),), Limits())
    assert raised.value.code is Code.BAD_VALUE


def test_an_id_is_made_from_the_first_place() -> None:
    at = Standing(Log.SUBMIT, pack_position(3, 77, 5), 0)
    assert made_id(at, 9) == "9-3-77-5"
    forwarded = Standing(Log.FORWARDED, pack_position(1, 2), 0, 9 << 61 | pack_position(3, 77, 5))
    assert made_id(forwarded, 40) == "9-3-77-5"


def test_transport_headers_are_passed_on_but_are_no_content() -> None:
    form = Form(id="a", queue="q", due=1_796_115_600_000)
    at = Standing(Log.SUBMIT, 0, 0)
    reader = Reader(Limits())
    one = reader.read(Sent(form, b"", (("a", b"1"), ("b", b"2")), (("trace", b"1"),)), at, 0)
    two = reader.read(Sent(form, b"", (("b", b"2"), ("a", b"1")), (("trace", b"2"), ("a", b"x"))), at, 0)
    assert getattr(one, "digest", 1) == getattr(two, "digest", 2)
    assert getattr(one, "headers", 1) == (("trace", b"1"), ("a", b"1"), ("b", b"2"))
    assert getattr(two, "headers", 2) == (("trace", b"2"), ("b", b"2"), ("a", b"1"))
