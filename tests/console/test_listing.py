from typing import Any

import pytest
from minutewheel import submission
from minutewheel.console import listing
from minutewheel.console.exits import ExitCode, Failure
from minutewheel.console.listing import minutes_of
from minutewheel.wiring import Installation


@pytest.mark.parametrize(
    ("one", "first", "last", "meant"),
    [
        (None, None, None, range(1_000, 1_011)),
        ("now", None, None, range(1_000, 1_001)),
        ("5", None, None, range(5, 6)),
        (None, "5", "7", range(5, 8)),
        (None, "5", None, range(5, 16)),
        (None, None, "1002", range(1_000, 1_003)),
    ],
)
def test_which_minutes_are_meant(one: str | None, first: str | None, last: str | None, meant: range) -> None:
    assert minutes_of(one, first, last, 60_000_000) == meant


@pytest.mark.parametrize(("one", "first", "last"), [("now", "5", None), (None, "7", "5"), (None, "0", "1440")])
def test_what_are_no_minutes(one: str | None, first: str | None, last: str | None) -> None:
    with pytest.raises(Failure):
        minutes_of(one, first, last, 60_000_000)


async def test_a_minute_lists_what_is_filed_in_it_and_what_became_of_it(desk: Any, served: Installation) -> None:
    client = served.client()
    for name in ("stays", "goes"):
        await client.submit_answered(submission({}, queue="mail", id=name, at="2099-01-01T00:00:30Z"))
    await client.cancel("goes")
    call, screen = desk.call()
    assert await listing.list_(call, minute_="2099-01-01T00:00Z") == ExitCode.OK
    rows = {row["key"]: row["state"] for row in screen.documents}
    assert rows == {"default/stays": "waiting", "default/goes": "removed"}

    call, screen = desk.call(json=False)
    await listing.list_(call, from_="2099-01-01T00:00Z", limit=1)
    assert len(screen.text().splitlines()) == 2
    assert "--limit 0" in screen.err.getvalue()

    call, screen = desk.call()
    assert await listing.audit(call, "2099-01-01T00:00Z") == ExitCode.OK
    (audit,) = screen.documents
    assert (audit["rows"], audit["waiting"], audit["removed"], audit["state"]) == (2, 1, 1, "open")


async def test_what_is_missing_in_a_minute_that_is_over_fails_the_audit(desk: Any, installation: Installation) -> None:
    """Nobody dispatches, so what stands in a past minute is missing there."""
    from minutewheel.store.record import NO_HEADERS, Filed, pack
    from minutewheel.store.task import BucketRow, minute_of

    past = minute_of(installation.clock.now_ms()) - 1
    await installation.store.claim(7, 1, "m", past)
    progress = await installation.store.progress(7, past)
    record = pack(Filed(1, 9, 1, 2, 0, "acme/[red]lost", "mail", b"\x80", NO_HEADERS, b""))
    minute = progress.open_minute
    await installation.store.write(7, 1 << 32, [BucketRow(minute, 0, minute * 60_000, 9, record)])
    installation_now = (minute + 1) * 60_000
    from minutewheel.store.minutes import audit_of

    found = await audit_of(installation.store, minute, installation_now)
    call, screen = desk.call(json=False)
    listing.show_audit(found, call.output)
    assert "missing     1" in screen.text().splitlines()
    assert "acme/[red]lost" in screen.text()


async def test_what_runs_is_what_the_ledger_says(desk: Any, installation: Installation) -> None:
    now_ms = installation.clock.now_ms()
    await installation.ledger.claim(("mail", 3, 5), [1, 2], "worker-1", now_ms, now_ms + 60_000)
    call, screen = desk.call()
    assert await listing.list_(call, running=True) == ExitCode.OK
    row = {"queue": "mail", "shard": 3, "minute": 5, "worker": "worker-1", "starts": 1}
    assert screen.documents == [{**row, "filing": "1"}, {**row, "filing": "2"}]
    call, screen = desk.call(json=False)
    await listing.list_(call, running=True, limit=1)
    assert len(screen.text().splitlines()) == 2


async def test_two_kinds_of_list_exclude_each_other(desk: Any) -> None:
    for flags in ({"running": True, "dead": True}, {"running": True, "minute_": "now"}):
        with pytest.raises(Failure) as refused:
            await listing.list_(desk.call()[0], **flags)
        assert refused.value.code is ExitCode.USAGE
