from pathlib import Path
from typing import Any

import pytest
from minutewheel.console import demo_app
from minutewheel.console.demo import QUEUE, Record
from minutewheel.wiring import Installation


class Context:
    """As much of one as the handler needs."""

    key = "default/1"
    idempotency_key = "default/1:7"


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv(demo_app.RECORD, str(tmp_path / "record.tsv"))
    demo_app._record.cache_clear()
    yield Record(tmp_path / "record.tsv")
    demo_app._record.cache_clear()


async def test_each_start_is_one_line_that_the_demo_reads(record: Record, installation: Installation) -> None:
    assert demo_app.app.queues == (QUEUE,)
    assert record.lines() == 0
    for expected in (1, 2):
        before_ms = installation.clock.now_ms()
        await demo_app.work(0, Context())
        assert record.lines() == expected
        last = record.starts()[-1]
        assert (last.key, last.idempotency_key) == (Context.key, Context.idempotency_key)
        assert before_ms <= last.start_ms <= installation.clock.now_ms()
