"""Which form a record says it has."""

import pytest
from minutewheel.broker.command import Code, InvalidTask
from minutewheel.broker.media import is_binary_event, media_type_of

pytestmark = pytest.mark.pure


def test_json_without_a_word() -> None:
    assert media_type_of(()) == media_type_of((("x", b"y"),)) == "application/json"


@pytest.mark.parametrize(
    "value", [b"Application/MSGPACK", b" application/msgpack ; charset=UTF-8", b"application/msgpack;v=1"]
)
def test_parameters_and_case_do_not_count(value: bytes) -> None:
    assert media_type_of((("Content-Type", value),)) == "application/msgpack"


def test_only_utf8() -> None:
    latin = (("content-type", b"application/json; charset=latin-1"),)
    with pytest.raises(InvalidTask) as raised:
        media_type_of(latin)
    assert raised.value.code is Code.UNKNOWN_CONTENT_TYPE
    # The content-type of a binary CloudEvent is that of its payload, which is the submitter's own.
    event = (*latin, ("ce_specversion", b"1.0"))
    assert is_binary_event(event)
    assert media_type_of(event) == "application/json"
