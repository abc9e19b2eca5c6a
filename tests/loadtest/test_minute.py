import pytest
from minutewheel.loadtest.minute import Firings, Workload

pytestmark = pytest.mark.pure


def test_a_workload_is_the_same_for_the_same_seed_and_holds_each_filing_once() -> None:
    tasks = 12_000
    one, same, other = Workload(tasks, 1), Workload(tasks, 1), Workload(tasks, 2)
    assert list(one.pages()) == list(same.pages()) != list(other.pages())
    assert (one.late, one.cancelled) == (same.late, same.cancelled)
    assert len(one.dues()) == tasks + len(one.late)
    pages = [pair for page in one.pages() for pair in zip(page.dues, page.filings, strict=True)]
    assert pages == sorted(pages)
    assert len(pages) == tasks
    assert {len(record) for page in one.pages() for record in page.records} == {136}


def fired_by(workload: Workload) -> dict[int, int]:
    """When each task that is not cancelled should fire, by filing."""
    cancelled = {filing for _, _, filing in workload.cancelled}
    return {filing: -(-due_ms // 10) * 10 for filing, due_ms in workload.dues().items() if filing not in cancelled}


@pytest.mark.parametrize("fault", ["none", "lost", "repeated", "early", "late", "cancelled"])
def test_the_check_of_what_fired_sees_every_fault(fault: str) -> None:
    workload = Workload(300, 1)
    times = list(fired_by(workload).items())
    filing, now_ms = times[0]
    faults = {
        "none": times,
        "lost": times[1:],
        "repeated": [*times, (filing, now_ms)],
        "early": [(filing, now_ms - 10), *times[1:]],
        "late": [(filing, now_ms + 10), *times[1:]],
        "cancelled": [*times, (workload.cancelled[0][2], workload.cancelled[0][1])],
    }
    firings = Firings()
    for fired, at_ms in faults[fault]:
        firings.note(at_ms, [([fired], [b"record"])])
    if fault == "none":
        firings.check(workload, late_ms_max=9)
    else:
        with pytest.raises(RuntimeError):
            firings.check(workload, late_ms_max=9)
