"""The checks that msgspec leaves to us, against simple models."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.command import Code, InvalidTask
from minutewheel.broker.form import UNSUPPORTED
from minutewheel.broker.plain import JsonForm, MsgpackForm, read_fields, read_json, read_msgpack, refuse_deep

pytestmark = pytest.mark.pure

TEXT = st.text(alphabet=st.sampled_from('[]{}"\\,: a\u00e9'), max_size=6)
JSON = st.recursive(
    st.one_of(st.none(), st.integers(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=20,
)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@given(JSON, st.integers(0, 6), st.booleans())
def test_nesting_is_counted_as_a_reader_would(value: Any, bound: int, escaped: bool) -> None:
    data = json.dumps(value, ensure_ascii=escaped).encode()
    if depth(value) <= bound:
        refuse_deep(data, bound)
    else:
        with pytest.raises(InvalidTask) as raised:
            refuse_deep(data, bound)
        assert raised.value.code is Code.TOO_DEEP


MEMBERS: list[tuple[str, list[Any]]] = [
    ("id", ["a", 'say "hi"', '\\"']),
    ("queue", ["q"]),
    ("due", ["2026-12-01T09:00:00Z", 1_796_115_600_000]),
    ("payload", [1, "x", 'a "quoted" one', {"id": 1, "queue": '"'}, ["id", "id"]]),
    ("headers", [{}, {"a": "1"}, {"a": None, 'b"': '"'}]),
    ("retry", [{}, {"factor": 2}, {"base_ms": 1, "cap_ms": 5}]),
    ("receipt", ["r", '"']),
    ("priority", [1]),
]


@st.composite
def members(draw: st.DrawFn) -> list[tuple[str, Any]]:
    names = draw(st.lists(st.sampled_from(MEMBERS), max_size=8))
    return [(name, draw(st.sampled_from(values))) for name, values in names]


@given(members(), st.sampled_from(["", " ", "\n\t "]))
def test_a_field_that_is_given_twice_is_always_seen_and_no_other_is_accused(
    pairs: list[tuple[str, Any]], space: str
) -> None:
    text = ",".join(f"{space}{json.dumps(name)}{space}:{space}{json.dumps(value)}{space}" for name, value in pairs)
    value = f"{{{text}}}".encode()
    names = [name for name, _ in pairs]
    if len(set(names)) == len(names):
        assert read_json(value, 64).form == msgspec.json.decode(value, type=JsonForm)
        assert set(read_fields(value, 64)) == set(names)
        return
    for read in (read_json, read_fields):
        with pytest.raises(InvalidTask) as raised:
            read(value, 64)
        assert raised.value.code is Code.DUPLICATE_FIELD
        assert names.count(raised.value.field) > 1


@given(members())
def test_in_msgpack_too(pairs: list[tuple[str, Any]]) -> None:
    encode = msgspec.msgpack.encode
    fixed = [(name, b"x" if name == "payload" else value) for name, value in pairs]
    body = b"".join(encode(name) + encode(value) for name, value in fixed)
    for head in (
        bytes([0x80 | len(fixed)]),
        b"\xde\x00" + bytes([len(fixed)]),
        b"\xdf\x00\x00\x00" + bytes([len(fixed)]),
    ):
        if len(dict(fixed)) == len(fixed):
            read_msgpack(head + body)
        else:
            with pytest.raises(InvalidTask) as raised:
                read_msgpack(head + body)
            assert raised.value.code is Code.DUPLICATE_FIELD


def test_both_forms_have_the_same_fields() -> None:
    assert JsonForm.__struct_fields__ == MsgpackForm.__struct_fields__
    assert UNSUPPORTED.isdisjoint(JsonForm.__struct_fields__)


def test_a_name_of_the_senders_making_is_bounded_and_printable() -> None:
    for name in ("x" * 10_000, "a\nb", "\x1b[31m"):
        with pytest.raises(InvalidTask) as raised:
            read_json(json.dumps({name: 1}).encode(), 64)
        assert raised.value.code is Code.UNKNOWN_FIELD
        assert len(raised.value.field) < 400
        assert raised.value.field.isprintable()
