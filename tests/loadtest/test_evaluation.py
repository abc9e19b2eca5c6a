import pytest
from minutewheel.loadtest.evaluation import Delivery, Evidence, Sent, Start, Strike, tenures_of
from minutewheel.loadtest.report import Counts, Tenure

pytestmark = pytest.mark.pure

T0 = 1_800_000_000_000 - 1_800_000_000_000 % 60_000 + 57_000
"""Three seconds before a minute ends."""


def due(number: int) -> int:
    return T0 + 500 * number


class Records:
    """Ten tasks with which all is well; a test spoils them."""

    def __init__(self) -> None:
        self.sent = [Sent(f"t/{n}", due(n), due(n) - 400, due(n) - 390) for n in range(10)]
        self.deliveries = [Delivery(f"t/{n}", n, n, due(n) + n) for n in range(10)]
        self.starts = [Start(f"t/{n}", f"t/{n}:1", due(n) + 20, "worker 0") for n in range(10)]
        self.strikes: list[Strike] = []
        self.tenures: list[Tenure] = []

    def evidence(self, judged_ms: int | None = None) -> Evidence:
        return Evidence(
            T0 - 1_000,
            T0 + 6_000,
            self.sent,
            self.deliveries,
            self.starts,
            self.strikes,
            self.tenures,
            judged_ms=judged_ms,
        )

    @property
    def counts(self) -> Counts:
        return self.evidence().counts


@pytest.fixture
def records() -> Records:
    return Records()


def test_where_all_is_well_nothing_is_wrong(records: Records) -> None:
    assert records.counts == Counts(submitted=10, accepted=10, fired=10, done=10)
    assert records.evidence().remarks == ()


def test_a_task_that_was_never_fired_or_never_began_is_lost(records: Records) -> None:
    del records.starts[4]
    assert (records.counts.lost, records.counts.fired, records.counts.done) == (1, 10, 9)
    del records.deliveries[7]
    assert (records.counts.lost, records.counts.fired, records.counts.done) == (2, 9, 9)


def test_what_was_not_accepted_is_rejected_and_not_lost(records: Records) -> None:
    records.sent[3] = records.sent[3]._replace(accepted_ms=None)
    del records.deliveries[3], records.starts[3]
    assert records.counts == Counts(submitted=10, accepted=9, rejected=1, fired=9, done=9)


def test_what_was_not_acknowledged_and_fired_all_the_same_is_told(records: Records) -> None:
    records.sent[3] = records.sent[3]._replace(accepted_ms=None)
    assert records.counts == Counts(submitted=10, accepted=9, rejected=1, fired=9, done=9)
    assert records.evidence().remarks == ("1 submissions that were not acknowledged were fired all the same",)


def test_a_second_start_is_a_duplicate(records: Records) -> None:
    records.starts.append(records.starts[2]._replace(at_ms=due(2) + 30, process="worker 1"))
    assert records.counts.duplicated == 1
    assert records.counts.done == 10


def test_a_fault_of_the_process_that_began_it_about_then_excuses_a_second_start(records: Records) -> None:
    records.starts.append(records.starts[2]._replace(at_ms=due(2) + 40_000, process="worker 1"))
    for strike in (
        Strike("worker 1", due(2) + 100, due(2) + 200),
        Strike("worker 0", due(2) + 5_100, due(2) + 6_000),
        Strike("worker 0", due(2) - 9_000, due(2) - 5_100),
    ):
        records.strikes = [strike]
        assert records.counts.duplicated == 1
    records.strikes = [Strike("worker 0", due(2) + 100, due(2) + 200)]
    assert records.counts.duplicated == 0
    assert records.evidence().remarks == ("1 handlers that a fault had cut off, or nearly, began again",)


def test_nothing_excuses_a_second_effect(records: Records) -> None:
    records.starts.append(records.starts[2]._replace(idempotency_key="t/2:9"))
    records.strikes = [Strike("worker 0", due(2), due(2) + 200)]
    assert records.counts.duplicated == 1


def test_an_attempt_that_was_to_fail_is_followed_by_another_and_is_no_duplicate(records: Records) -> None:
    records.sent[2] = records.sent[2]._replace(failures=1)
    assert (records.counts.done, records.counts.lost) == (9, 1)
    records.starts.append(records.starts[2]._replace(at_ms=due(2) + 1_000, attempt=2))
    records.deliveries.append(Delivery("t/2", 2, 99, due(2) + 990))
    assert records.counts == Counts(submitted=10, accepted=10, fired=10, done=10)
    assert records.evidence().remarks == ("1 attempts failed, as was planned",)
    records.starts.append(records.starts[2]._replace(at_ms=due(2) + 2_000))
    assert records.counts.duplicated == 1


def test_an_attempt_too_many_is_a_duplicate(records: Records) -> None:
    records.starts.append(records.starts[2]._replace(at_ms=due(2) + 1_000, attempt=2))
    assert records.counts.duplicated == 1


@pytest.mark.parametrize("what", ["deliveries", "starts"])
def test_what_comes_before_its_due_time_is_early(records: Records, what: str) -> None:
    some = getattr(records, what)
    some[5] = some[5]._replace(at_ms=due(5) - 1)
    assert records.counts.early == 1


def test_an_early_start_counts_though_it_was_not_acknowledged(records: Records) -> None:
    records.sent[5] = records.sent[5]._replace(accepted_ms=None)
    records.starts[5] = records.starts[5]._replace(at_ms=due(5) - 1)
    assert records.counts.early == 1


def test_a_repeated_delivery_is_told_and_is_no_duplicate(records: Records) -> None:
    records.deliveries.append(records.deliveries[1]._replace(at_ms=due(1) + 900))
    assert records.counts.duplicated == 0
    assert records.evidence().remarks == ("1 deliveries were repeated; workers skip these by the ledger",)
    assert dict(records.evidence().lateness.percentiles_ms)[100.0] == 9


def test_others_tasks_are_not_looked_at(records: Records) -> None:
    records.deliveries.append(Delivery("t/other", 1, 77, 1))
    records.starts += [Start("t/other", "t/other:1", 1, "worker 0")] * 2
    assert records.counts == Counts(submitted=10, accepted=10, fired=10, done=10)


def test_an_interrupted_run_judges_only_what_was_due_long_enough_ago(records: Records) -> None:
    del records.starts[1], records.deliveries[7]
    assert records.evidence(judged_ms=due(5)).counts.lost == 1
    assert records.evidence(judged_ms=due(1)).counts.lost == 0
    (remark,) = records.evidence(judged_ms=due(1)).remarks
    assert remark.startswith("2 tasks had not begun")


def test_a_task_is_recovered_whose_shard_got_another_owner_between_acceptance_and_firing(records: Records) -> None:
    records.tenures = [
        Tenure(shard=shard, member=member, from_ms=from_ms, to_ms=to_ms)
        for shard in (2, 6)
        for member, from_ms, to_ms in (("a", T0 - 5_000, due(2) - 300), ("b", due(2) - 200, T0 + 9_000))
    ]
    assert records.counts.recovered == 1


def test_lateness_counts_from_the_due_time_or_a_later_acceptance(records: Records) -> None:
    assert records.evidence().lateness.percentiles_ms == (
        (50.0, 4), (90.0, 8), (99.0, 9), (99.9, 9), (99.99, 9), (100.0, 9),
    )  # fmt: skip
    records.sent[0] = records.sent[0]._replace(accepted_ms=due(0) + 2_000)
    records.deliveries[0] = records.deliveries[0]._replace(at_ms=due(0) + 2_500)
    assert records.evidence().lateness.percentiles_ms[-1] == (100.0, 500)
    (remark,) = records.evidence().remarks
    assert "1 tasks were accepted after their due time, at most 2,000 ms" in remark
    assert "2,500 ms late" in remark


def test_series_have_a_value_a_second_and_none_where_nothing_was_due(records: Records) -> None:
    series = {one.name: one.values for one in records.evidence().series}
    assert series["submitted"] == (1, 2, 2, 2, 2, 1, 0, 0)
    assert series["fired"] == (0, 2, 2, 2, 2, 2, 0, 0)
    assert series["done"] == (0, 2, 2, 2, 2, 2, 0, 0)
    assert series["lateness p50"] == (None, 0, 2, 4, 6, 8, None, None)
    assert series["lateness p99"] == (None, 1, 3, 5, 7, 9, None, None)


def test_the_heat_has_a_row_a_minute_and_a_place_a_shard(records: Records) -> None:
    heat = records.evidence().heat
    assert heat is not None
    assert heat.first_minute == T0 // 60_000
    assert [row[:10] for row in heat.fired] == [(1,) * 6 + (0,) * 4, (0,) * 6 + (1,) * 4]
    assert {len(row) for row in heat.fired} == {64}
    records.deliveries = []
    assert records.evidence().heat is None
    assert dict(records.evidence().lateness.percentiles_ms)[100.0] == 0


def test_tenures_begin_and_end_at_looks() -> None:
    looks = [(10, {0: "a", 1: "a"}), (20, {0: "a", 1: "b"}), (30, {1: "b"}), (40, {0: "a", 1: "b"})]
    found = [(one.shard, one.member, one.from_ms, one.to_ms) for one in tenures_of(looks, 50)]
    assert found == [(0, "a", 10, 30), (0, "a", 40, 50), (1, "a", 10, 20), (1, "b", 20, 50)]
    assert tenures_of([], 50) == ()
