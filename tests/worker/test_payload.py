from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.worker.payload import decoder_for

pytestmark = pytest.mark.pure

types = st.sampled_from([Any, dict[str, Any], list[int], str, int, bytes, dict[str, dict[str, int]]])
content_types = st.sampled_from(["", "application/json", "Application/JSON; charset=utf-8", "application/msgpack"])


@given(types, st.binary(max_size=200), content_types)
def test_no_payload_makes_it_raise_anything_but_a_value_error(kind: Any, payload: bytes, content_type: str) -> None:
    try:
        decoder_for(kind)(payload, content_type)
    except ValueError:
        return


def test_deep_nesting_is_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="nested too deep"):
        decoder_for(Any)(b"[" * 1_000_000, "")
    with pytest.raises(ValueError, match="nested too deep"):
        decoder_for(Any)(b"\x91" * 1_000_000, "application/msgpack")


def test_bytes_are_taken_as_they_are() -> None:
    assert decoder_for(bytes)(b"\xff\x00", "image/png") == b"\xff\x00"


def test_a_dialect_of_json_is_json_and_another_type_is_refused() -> None:
    assert decoder_for(Any)(b"[1]", "application/cloudevents+json") == [1]
    with pytest.raises(ValueError, match="'text/csv' is neither JSON nor msgpack"):
        decoder_for(Any)(b"[1]", "text/csv")


def test_no_payload_at_all_is_a_null() -> None:
    assert decoder_for(None)(b"", "") is None
    assert decoder_for(dict[str, int] | None)(b"", "application/msgpack") is None
    with pytest.raises(msgspec.ValidationError, match="got `null`"):
        decoder_for(dict[str, int])(b"", "")
