import msgspec
import pytest
from minutewheel.loadtest.page.frame import course_of
from minutewheel.loadtest.page.owners import gaps, letters, owners_chart
from minutewheel.loadtest.report import Report, Tenure

pytestmark = pytest.mark.pure


def tenure(shard: int, member: str, from_ms: int, to_ms: int) -> Tenure:
    return Tenure(shard=shard, member=member, from_ms=from_ms, to_ms=to_ms)


SOME = [tenure(1, "b", 0, 600_000), tenure(0, "a", 603_000, 1_200_000), tenure(0, "b", 0, 600_000)]


def test_the_longest_time_without_an_owner_is_said(full_report: Report) -> None:
    assert list(gaps(SOME)) == [(3_000, 0)]
    report = msgspec.structs.replace(full_report, tenures=tuple(SOME), bands=())
    told = owners_chart(report.tenures, course_of(report))
    assert "longest time of a shard without an owner: 3 s" in told
    assert "2 shards, 2 members" in told


def test_each_member_has_a_letter_a_colour_and_its_bars(full_report: Report) -> None:
    report = msgspec.structs.replace(full_report, tenures=tuple(SOME), bands=())
    told = owners_chart(report.tenures, course_of(report))
    assert 'd="M502 0.5H1000" class="bar m0"' in told
    assert 'd="M0 1.5H500M0 0.5H500" class="bar m1"' in told
    assert '<span class="name m0">A</span>a</li>' in told
    assert '<th scope="row">B</th><td>b</td><td>2</td><td>2</td><td>20 min</td>' in told
    assert told.count('class="name m1" style=') == 2


def test_letters_do_not_end() -> None:
    assert [letters(index) for index in (0, 25, 26, 27, 701, 702)] == ["A", "Z", "AA", "AB", "ZZ", "AAA"]
