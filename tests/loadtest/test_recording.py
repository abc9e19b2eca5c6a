import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from minutewheel.loadtest import recording
from minutewheel.loadtest.evaluation import Start
from minutewheel.loadtest.recording import QUEUE, FailsOnPurpose, Record, failures_of, payload_of


class Context:
    """As much of one as the handler needs."""

    key = "default/1"
    idempotency_key = "default/1:7"
    attempt = 2


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    file = tmp_path / "record.tsv"
    monkeypatch.setenv(recording.RECORD, str(file))
    recording._record.cache_clear()
    yield file
    recording._record.cache_clear()


async def test_each_start_is_one_line_that_is_read_once(path: Path) -> None:
    record = Record(path, "worker 3")
    assert recording.app.queues == (QUEUE,)
    assert record.news() == []
    for _ in range(2):
        before_ms = time.time_ns() // 1_000_000
        await recording.work(b"", Context())  # type: ignore[arg-type]
        (start,) = record.news()
        assert start[:2] == (Context.key, Context.idempotency_key)
        assert (start.process, start.attempt) == ("worker 3", 2)
        assert before_ms <= start.at_ms <= time.time_ns() // 1_000_000
    assert record.news() == []
    assert len(Record(path, "worker 3").news()) == 2


def test_a_line_that_is_not_whole_is_read_when_it_is(tmp_path: Path) -> None:
    path = tmp_path / "record.tsv"
    record = Record(path, "w")
    path.write_text("a/1\ta/1:1\t1\t5\na/2\ta/2")
    assert record.news() == [Start("a/1", "a/1:1", 5, "w")]
    path.write_text("a/1\ta/1:1\t1\t5\na/2\ta/2:1\t3\t66\n")
    assert record.news() == [Start("a/2", "a/2:1", 66, "w", 3)]


async def test_so_many_attempts_fail_as_the_payload_says_and_each_is_written_down(path: Path) -> None:
    with pytest.raises(FailsOnPurpose):
        await recording.work(payload_of(2, 40), Context())  # type: ignore[arg-type]
    await recording.work(payload_of(1, 40), Context())  # type: ignore[arg-type]
    assert [start.attempt for start in Record(path, "w").news()] == [2, 2]


@pytest.mark.parametrize("payload_bytes", [2, 40, 4_000])
def test_a_payload_is_as_large_as_it_should_be(payload_bytes: int) -> None:
    payload = payload_of(2, payload_bytes)
    assert len(payload) == payload_bytes
    assert failures_of(payload) == 2
    assert failures_of(b"") == 0
