import json

import pytest
from minutewheel.loadtest.fault_plan import FAULTS_MAX, BadPlan, Fault, What, parse_plan

pytestmark = pytest.mark.pure

NUMBERS: dict[What, int] = {"dispatcher": 1, "worker": 2}


def read_ms(text: str) -> int:
    if not text.endswith("s"):
        raise ValueError(f"{text!r} is no length of time")
    return int(text[:-1]) * 1_000


def parse(*faults: object) -> tuple[Fault, ...]:
    return parse_plan(json.dumps(faults).encode(), NUMBERS, 60_000, read_ms)


def test_faults_are_read_and_put_in_order() -> None:
    assert parse(
        {"at": "20s", "do": "pause", "what": "worker", "which": 1, "for": "5s"},
        {"at": "10s", "do": "kill", "what": "dispatcher"},
        {"at": "25s", "do": "stop", "what": "worker", "which": 1, "for": "2s"},
    ) == (
        Fault(at_ms=10_000, do="kill", what="dispatcher", which=0, for_ms=0),
        Fault(at_ms=20_000, do="pause", what="worker", which=1, for_ms=5_000),
        Fault(at_ms=25_000, do="stop", what="worker", which=1, for_ms=2_000),
    )
    assert parse() == ()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"at": "soon"}, "fault 2: at: 'soon' is no length of time"),
        ({"at": 10}, "fault 2: at: Expected `str`, got `int`"),
        ({"at": "60s"}, "fault 2: at: 60s is not within"),
        ({"do": "burn"}, "fault 2: do: Invalid enum value 'burn'"),
        ({"what": "kafka"}, "fault 2: what: Invalid enum value 'kafka'"),
        ({"which": 2}, "fault 2: which: there are 2 workers, numbered from 0, so no 2"),
        ({"which": -1}, "fault 2: which: there are 2 workers"),
        ({"for": "a while"}, "fault 2: for: 'a while' is no length"),
        ({"do": "pause"}, "fault 2: for: a pause needs it"),
        ({"do": "pause", "for": "0s"}, "fault 2: for: a pause takes longer"),
        ({"when": "now"}, "fault 2: Object contains unknown field `when`"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_number_and_field(changed: dict[str, object], told: str) -> None:
    good = {"at": "5s", "do": "kill", "what": "worker", "which": 1}
    with pytest.raises(BadPlan) as refused:
        parse({"at": "1s", "do": "kill", "what": "dispatcher"}, {**good, **changed})
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


def test_a_field_that_lacks_is_named() -> None:
    with pytest.raises(BadPlan, match="fault 1: Object missing required field `do`"):
        parse({"at": "1s", "what": "worker"})


def test_a_process_that_is_still_down_cannot_fail_again() -> None:
    first: dict[str, object] = {"at": "10s", "do": "kill", "what": "dispatcher", "for": "5s"}
    pause: dict[str, object] = {"do": "pause", "what": "dispatcher", "for": "1s"}
    with pytest.raises(BadPlan, match="fault 1: at: fault 2 still has dispatcher 0 then"):
        parse({"at": "14s", **pause}, first)
    assert len(parse({"at": "15s", **pause}, first)) == 2
    with pytest.raises(BadPlan, match="fault 2: at"):
        parse({"at": "1s", "do": "kill", "what": "worker"}, {"at": "1s", "do": "stop", "what": "worker"})


@pytest.mark.parametrize("text", [b"{}", b"[", b"\xff", b'{"at": "1s"}'])
def test_what_is_no_list_is_refused(text: bytes) -> None:
    with pytest.raises(BadPlan, match="is a list in JSON"):
        parse_plan(text, NUMBERS, 60_000, read_ms)


def test_there_is_a_limit() -> None:
    fault = {"at": "1s", "do": "kill", "what": "worker"}
    with pytest.raises(BadPlan, match="at most 1,000"):
        parse(*[fault] * (FAULTS_MAX + 1))
