import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from minutewheel.loadtest import recording
from minutewheel.loadtest.evaluation import Start
from minutewheel.loadtest.recording import QUEUE, Record


class Context:
    """As much of one as the handler needs."""

    key = "default/1"
    idempotency_key = "default/1:7"


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
        assert start.process == "worker 3"
        assert before_ms <= start.at_ms <= time.time_ns() // 1_000_000
    assert record.news() == []
    assert len(Record(path, "worker 3").news()) == 2


def test_a_line_that_is_not_whole_is_read_when_it_is(tmp_path: Path) -> None:
    path = tmp_path / "record.tsv"
    record = Record(path, "w")
    path.write_text("a/1\ta/1:1\t5\na/2\ta/2")
    assert record.news() == [Start("a/1", "a/1:1", 5, "w")]
    path.write_text("a/1\ta/1:1\t5\na/2\ta/2:1\t66\n")
    assert record.news() == [Start("a/2", "a/2:1", 66, "w")]
