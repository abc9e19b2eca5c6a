"""What is wrong with the keyspace, and what is to be done about each difference?

Pure. `differences` are the sentences of `store.cassandra_schema.check_schema`.
"""

import re
from collections.abc import Mapping, Sequence

from .finding import Finding

CASSANDRA = "cassandra"
SETUP = "run `minutewheel setup`"
KINDS = (
    (r"keyspace \S+ is missing", "keyspace_missing", SETUP),
    (r"keyspace \S+: replication is", "replication", "ALTER KEYSPACE with what is asked for, then nodetool repair"),
    (r"table \S+ is missing", "table_missing", f"{SETUP}; if the table was there before, restore it from a backup"),
    (r"table \S+: column \S+ is not ours", "column", "drop it, if nothing else uses it"),
    (r"table \S+: column", "column", "was it changed by hand? ALTER TABLE back to what store/schema.cql says"),
    (r"table \S+: its primary key", "primary_key", "it is another's table, or damaged: use another cassandra.keyspace"),
    (r"table \S+: gc_grace", "gc_grace", "ALTER TABLE … WITH gc_grace_seconds = what is asked for"),
    (r"the number of parts", "parts", "restore the row `parts` of the table meta from a backup: never guess it"),
)
VERSION = re.compile(r"the schema's version is (\S+), this release knows (\d+)")


def schema_findings(differences: Sequence[str]) -> list[Finding]:
    return [_finding(difference) for difference in differences]


def _finding(difference: str) -> Finding:
    if match := VERSION.match(difference):
        newer = match[1].isdecimal() and int(match[1]) > int(match[2])
        do = "upgrade this installation: never run an older release on it" if newer else SETUP
        return Finding(CASSANDRA, "schema_newer" if newer else "schema_older", difference, do)
    for pattern, code, do in KINDS:
        if re.match(pattern, difference):
            return Finding(CASSANDRA, code, difference, do)
    return Finding(CASSANDRA, "schema", difference, SETUP)


def keyspace_findings(keyspace: str, ttl_s: Mapping[str, int], *, durable: bool) -> list[Finding]:
    """`ttl_s`: table → its default time to live, 0 for none."""
    found = []
    if not durable:
        what = f"keyspace {keyspace} has durable_writes = false: what was acknowledged is lost with the power"
        found.append(
            Finding(CASSANDRA, "durable_writes", what, f"ALTER KEYSPACE {keyspace} WITH durable_writes = true")
        )
    for table, seconds in sorted(ttl_s.items()):
        if seconds:
            what = f"table {table} forgets every row after {seconds} s: tasks would be lost"
            do = f"ALTER TABLE {keyspace}.{table} WITH default_time_to_live = 0"
            found.append(Finding(CASSANDRA, "default_ttl", what, do))
    return found


def copies_findings(replication: int, servers: int) -> list[Finding]:
    if replication <= servers:
        return []
    what = f"cassandra.replication asks for {replication} copies, and the cluster has {servers} servers"
    return [Finding(CASSANDRA, "too_few_servers", what, "add servers, or lower cassandra.replication")]


def unbegun_findings(shards: Sequence[int]) -> list[Finding]:
    """`shards` without a progress row."""
    if not shards:
        return []
    what = f"{len(shards)} shards have no progress row ({', '.join(map(str, shards[:8]))}…)"
    do = "on a new fleet run `minutewheel setup`; on one that ran, restore the table progress from a backup"
    return [Finding(CASSANDRA, "progress_missing", what, do)]
