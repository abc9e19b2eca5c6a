"""Is a keyspace what this release needs, and how does it become so?

`schema.cql` is the one truth: `apply_schema` runs it, `check_schema` reads it and compares it with what the cluster
says it has. The keyspace's `meta` table keeps the version, and the number of groups of task rows, which is fixed at
set-up: changed later, every key's row would be looked for in the wrong place.
"""

# ruff: noqa: S608 - statements are put together of constants and a checked keyspace name; values are always bound

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from .cassandra_bridge import CassandraConnection
from .errors import NewerSchema, NoSchema, StoreError

VERSION = 1
PARTS = 64
PARTS_MAX = 4_096
KEYSPACE = re.compile(r"[a-z][a-z0-9_]{0,47}")
SCHEMA = Path(__file__).with_name("schema.cql")
GC_GRACE_S = 864_000
"""Cassandra's own default."""

Replication = Mapping[str, str | int]
"""As CQL has it: {"class": "NetworkTopologyStrategy", "dc1": 3}."""


class Table(Struct, frozen=True):
    """A table as declared, or as found. `columns`: name → type, with " static" where it is so."""

    columns: dict[str, str]
    partition_key: tuple[str, ...]
    clustering: tuple[str, ...]
    gc_grace_s: int


def declared(text: str) -> dict[str, Table]:
    """The tables of a text like schema.cql."""
    found = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+) \(\n(.*?)\n\)(.*?);", text, re.DOTALL)
    return {name: _declared_table(body, options) for name, body, options in found}


def check_name(keyspace: str) -> str:
    """The name as it may stand in a statement; `StoreError` for any other."""
    if not KEYSPACE.fullmatch(keyspace):
        raise StoreError(f"not a keyspace name: {keyspace!r} (lower-case letters, digits and _, up to 48)")
    return keyspace


async def apply_schema(
    connection: CassandraConnection, keyspace: str, replication: Replication, *, parts: int = PARTS
) -> list[str]:
    """Create what is missing, and answer as `check_schema` does: what differs still must be mended by hand.

    Repeatable, but for one caller at a time. `parts` counts only the first time. `NewerSchema` for a keyspace of a
    later release, `StoreError` for a name or replication that can't be one.
    """
    if not 0 < parts <= PARTS_MAX:
        raise StoreError(f"parts must be 1 … {PARTS_MAX}, not {parts}")
    check_name(keyspace)
    await connection.alter(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {_map(replication)}")
    await _refuse_newer(connection, keyspace)
    for statement in _statements(SCHEMA.read_text()):
        await connection.alter(statement.replace("IF NOT EXISTS ", f"IF NOT EXISTS {keyspace}.", 1))
    put = await connection.prepare(f"INSERT INTO {keyspace}.meta (name, value) VALUES (?, ?) IF NOT EXISTS")
    for name, value in (("schema", VERSION), ("parts", parts)):
        await connection.write_if(put.bind((name, str(value))))
    return await check_schema(connection, keyspace, replication)


async def check_schema(
    connection: CassandraConnection, keyspace: str, replication: Replication | None = None
) -> list[str]:
    """What differs from what this release needs, a sentence each; an empty list is well. Nothing is changed."""
    check_name(keyspace)
    found_replication = await _replication(connection, keyspace)
    if found_replication is None:
        return [f"keyspace {keyspace} is missing"]
    differences = []
    if replication is not None and found_replication != (asked := _plain(replication)):
        differences.append(f"keyspace {keyspace}: replication is {found_replication}, asked for is {asked}")
    found = await _found(connection, keyspace)
    for name, table in declared(SCHEMA.read_text()).items():
        differences += _table_differences(name, table, found.get(name))
    if "meta" in found:
        differences += _meta_differences(await _meta(connection, keyspace))
    return differences


async def parts_of(connection: CassandraConnection, keyspace: str) -> int:
    """The number of groups of task rows. `NoSchema` if the keyspace was not set up, `NewerSchema` if by a later
    release."""
    check_name(keyspace)
    missing = NoSchema(f"keyspace {keyspace}")
    try:
        meta = await _meta(connection, keyspace)
    except StoreError as error:
        if "InvalidRequest" in str(error):
            raise missing from error
        raise
    if meta.keys() < {"schema", "parts"}:
        raise missing
    _refuse(meta, keyspace)
    return int(meta["parts"])


async def _refuse_newer(connection: CassandraConnection, keyspace: str) -> None:
    if "meta" in await _found(connection, keyspace):
        _refuse(await _meta(connection, keyspace), keyspace)


def _refuse(meta: Mapping[str, str], keyspace: str) -> None:
    version = int(meta.get("schema", VERSION))
    if version > VERSION:
        raise NewerSchema(f"keyspace {keyspace}", version, VERSION)


async def _meta(connection: CassandraConnection, keyspace: str) -> dict[str, str]:
    select = await connection.prepare(f"SELECT name, value FROM {keyspace}.meta")
    return dict(await connection.read(select.bind(())))


async def _replication(connection: CassandraConnection, keyspace: str) -> dict[str, str] | None:
    select = await connection.prepare("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?")
    for (replication,) in await connection.read(select.bind((keyspace,))):
        return _plain(replication)
    return None


async def _found(connection: CassandraConnection, keyspace: str) -> dict[str, Table]:
    """The keyspace's tables as the cluster has them."""
    columns = await connection.prepare(
        "SELECT table_name, column_name, kind, position, type FROM system_schema.columns WHERE keyspace_name = ?"
    )
    options = await connection.prepare(
        "SELECT table_name, gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = ?"
    )
    by_table: dict[str, list[tuple[str, str, int, str]]] = {}
    for table, name, kind, position, type_ in await connection.read(columns.bind((keyspace,))):
        by_table.setdefault(table, []).append((name, kind, position, type_))
    found: dict[str, int] = dict(await connection.read(options.bind((keyspace,))))
    return {name: _found_table(rows, found[name]) for name, rows in by_table.items() if name in found}


def _found_table(rows: Sequence[tuple[str, str, int, str]], gc_grace_s: int) -> Table:
    def of_kind(wanted: str) -> tuple[str, ...]:
        return tuple(name for _, name in sorted((position, name) for name, kind, position, _ in rows if kind == wanted))

    columns = {name: f"{type_} static" if kind == "static" else type_ for name, kind, _, type_ in rows}
    return Table(columns, of_kind("partition_key"), of_kind("clustering"), gc_grace_s)


def _declared_table(body: str, options: str) -> Table:
    *lines, key = [line.strip().rstrip(",") for line in body.splitlines()]
    columns = dict(line.split(" ", 1) for line in lines)
    match = re.fullmatch(r"PRIMARY KEY \((?:\(([^)]+)\)|(\w+))(?:, (.+))?\)", key)
    assert match is not None, key
    composite, single, clustering = match.groups()
    grace = re.search(r"gc_grace_seconds = (\d+)", options)
    return Table(
        columns,
        tuple((composite or single).split(", ")),
        tuple(clustering.split(", ")) if clustering else (),
        int(grace[1]) if grace else GC_GRACE_S,
    )


def _table_differences(name: str, wanted: Table, found: Table | None) -> Iterable[str]:
    if found is None:
        yield f"table {name} is missing"
        return
    for column, type_ in wanted.columns.items():
        has = found.columns.get(column)
        if has != type_:
            yield f"table {name}: column {column} is {has or 'missing'}, must be {type_}"
    for column in found.columns.keys() - wanted.columns.keys():
        yield f"table {name}: column {column} is not ours"
    if (wanted.partition_key, wanted.clustering) != (found.partition_key, found.clustering):
        yield f"table {name}: its primary key is {found.partition_key} {found.clustering}"
    if wanted.gc_grace_s != found.gc_grace_s:
        yield f"table {name}: gc_grace_seconds is {found.gc_grace_s}, must be {wanted.gc_grace_s}"


def _meta_differences(meta: Mapping[str, str]) -> Iterable[str]:
    if meta.get("schema") != str(VERSION):
        yield f"the schema's version is {meta.get('schema', 'missing')}, this release knows {VERSION}"
    if "parts" not in meta:
        yield "the number of parts is missing"


def _statements(text: str) -> list[str]:
    without_comments = re.sub(r"--.*", "", text)
    return [statement.strip() for statement in without_comments.split(";") if statement.strip()]


def _plain(replication: Replication) -> dict[str, str]:
    """The same for what was asked and what the cluster says: strings, and the class by its short name."""
    return {name: str(value).rpartition(".")[2] for name, value in sorted(replication.items())}


def _map(replication: Replication) -> str:
    for part in (*replication, *map(str, replication.values())):
        if not re.fullmatch(r"[\w.\-]+", part):
            raise StoreError(f"not a word of a replication: {part!r}")
    return "{" + ", ".join(f"'{name}': '{value}'" for name, value in replication.items()) + "}"
