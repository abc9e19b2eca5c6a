import pytest
from minutewheel.doctor.schema import copies_findings, keyspace_findings, schema_findings, unbegun_findings

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("difference", "code"),
    [
        ("keyspace mw is missing", "keyspace_missing"),
        ("keyspace mw: replication is {'class': 'SimpleStrategy'}, asked for is {}", "replication"),
        ("table bucket is missing", "table_missing"),
        ("table bucket: column due is missing, must be bigint", "column"),
        ("table bucket: its primary key is ('a',) ()", "primary_key"),
        ("table progress: gc_grace_seconds is 1, must be 2", "gc_grace"),
        ("the schema's version is 7, this release knows 1", "schema_newer"),
        ("the schema's version is 0, this release knows 1", "schema_older"),
        ("the schema's version is missing, this release knows 1", "schema_older"),
        ("the number of parts is missing", "parts"),
        ("something that nobody thought of", "schema"),
    ],
)
def test_each_difference_has_its_remedy(difference: str, code: str) -> None:
    (found,) = schema_findings([difference])
    assert (found.service, found.code, found.what) == ("cassandra", code, difference)
    assert found.do


def test_a_newer_schema_is_not_for_set_up_to_change() -> None:
    assert "setup" not in schema_findings(["the schema's version is 7, this release knows 1"])[0].do


def test_what_a_keyspace_must_keep() -> None:
    assert keyspace_findings("mw", {"task": 0}, durable=True) == []
    found = keyspace_findings("mw", {"task": 60, "bucket": 0}, durable=False)
    assert [finding.code for finding in found] == ["durable_writes", "default_ttl"]
    assert "mw.task" in found[1].do


def test_more_copies_than_servers() -> None:
    assert copies_findings(3, 3) == []
    assert [finding.code for finding in copies_findings(3, 2)] == ["too_few_servers"]


def test_shards_that_never_began() -> None:
    assert unbegun_findings([]) == []
    assert "64 shards" in unbegun_findings(range(64))[0].what
