"""How do several processes share the partitions of some topics through one SQLite file?

A team is a consumer group. `member` says who is in it and when each was heard last; `holding` says who holds which
partition. A member changes only its own holdings, in its *beat*: one transaction in which it says that it lives,
strikes those who have been silent for the session time, gives up what is beyond its share and takes what nobody
holds. So a partition passes from one living member to another only through the hands of the one that gives it up,
and from a silent one after its session. Every change gets a number (the team's `moved`); a member that sees another
number than that of its last beat beats again, at once if it waits in `poll`.

Beats are made in `poll`, so a member must poll within each session time; `poll(0, 0)` is a beat without records.
Positions are kept in memory and move only when a poll has returned: a cancelled one is read again.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..store.sqlite_connection import Call
from .dealing import portions, share
from .errors import NotAssigned
from .sqlite_file import Db, Log, LogFile
from .sqlite_log import Logs
from .sqlite_watch import Key, Watch
from .wire import Record

Place = tuple[str, int]
"""(topic, partition)."""


@dataclass(frozen=True, slots=True)
class Membership:
    """Who enters which team, for which topics; silent for `session_ms`, it is struck."""

    team: str
    name: str
    topics: tuple[str, ...]
    session_ms: int

    @property
    def beat_ms(self) -> int:
        return self.session_ms // 3


@dataclass(frozen=True, slots=True)
class Beat:
    """When a beat was, the last change of the team and of the topics that it saw, and what is held after it.

    Those that were taken in it have the offset that is committed, the others None: their reader knows better.
    """

    at_ms: int
    seen: tuple[int, int]
    held: Mapping[Place, int | None]


class SqliteMember:
    """One member of a group."""

    def __init__(self, file: LogFile, logs: Logs, run: Call, watch: Watch, me: Membership) -> None:
        self._file = file
        self._logs = logs
        self._run = run
        self._watch = watch
        self._me = me
        self._positions: dict[Place, int] = {}
        self._last = Beat(0, (-1, -1), {})
        self._turn = 0
        self._left = False

    async def enter(self) -> None:
        """Make the first beat."""
        await self._run(self._beat)
        self._watch.wake()

    async def poll(self, limit: int, wait_ms: int) -> list[Record]:
        records = await self._read_on(limit)
        if records or wait_ms <= 0 or limit <= 0:
            return records
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1000
        while not records and (left := until - loop.time()) > 0:
            if not self._news():
                await self._watch.wait_moved(self._keys(), min(left, self._me.beat_ms / 1000))
            records = await self._read_on(limit)
        return records

    async def commit(self, offsets: Mapping[Place, int]) -> None:
        await self._run(self._file.change, self._commit, dict(offsets))

    def assigned(self) -> frozenset[Place]:
        return frozenset(self._positions)

    async def leave(self) -> None:
        self._left = True
        await self._run(self._file.change, self._strike)
        self._positions = {}
        self._watch.wake()

    # ---- reading

    async def _read_on(self, limit: int) -> list[Record]:
        if self._left:
            raise NotAssigned(f"{self._me.name} has left {self._me.team}")
        records, positions = await self._run(self._read, limit)
        # Here, not in `_read`: what a cancelled poll has read was given to nobody.
        self._positions.update(positions)
        self._watch.wake()
        return records

    def _read(self, limit: int) -> tuple[list[Record], dict[Place, int]]:
        """Beat if it is time to; then what there is to read, and the positions after it."""
        self._file.look()
        if self._changed() or abs(self._file.clock_ms() - self._last.at_ms) >= self._me.beat_ms:
            self._beat()
        return self._file.view(self._records, limit)

    def _records(self, db: Db, limit: int) -> tuple[list[Record], dict[Place, int]]:
        ready = [(log, at) for log, at in self._ahead() if log.end > at]
        self._turn += 1
        turn = self._turn % len(ready) if ready else 0
        ready = ready[turn:] + ready[:turn]
        records: list[Record] = []
        positions: dict[Place, int] = {}
        for (log, at), portion in zip(ready, portions([log.end - at for log, at in ready], limit), strict=True):
            if portion:
                records += self._logs.records(db, log, at, portion)
                positions[log.topic, log.partition] = records[-1].offset + 1
        return records, positions

    def _ahead(self) -> list[tuple[Log, int]]:
        """Each partition that is this member's, and where to read on; what retention took is passed over."""
        places = self._positions.items()
        logs = ((self._file.known(topic, partition), at) for (topic, partition), at in places)
        return [(log, max(at, log.start)) for log, at in logs if log is not None]

    def _keys(self) -> list[Key]:
        return [self._me.team, *(log.id for log, _ in self._ahead())]

    def _news(self) -> bool:
        return self._changed() or any(log.end > at for log, at in self._ahead())

    def _changed(self) -> bool:
        """Whether the team or the topics have changed since the last beat."""
        return self._last.seen != (self._file.teams.get(self._me.team), self._file.catalog)

    # ---- the table of who holds what

    def _beat(self) -> None:
        beat = self._file.change(self._beat_in, self._file.clock_ms())
        self._positions = {place: self._positions[place] if at is None else at for place, at in beat.held.items()}
        self._last = beat

    def _beat_in(self, db: Db, now_ms: int) -> Beat:
        """Say that this member lives, strike the silent, give up what is too much, take what is free."""
        me, file = self._me, self._file
        called = self._call_roll(db, now_ms)
        given, taken = self._deal(db)
        if called or given or taken:
            self._hand_over(db, given, taken)
            moved = self._change_team(db)
        else:
            moved = file.teams[me.team]
        held = self._held(db)
        fresh = held - self._positions.keys() | set(taken)
        # Sorted, so that the turns of the partitions do not hang on the hashing of strings.
        positions = {place: self._committed(db, place) if place in fresh else None for place in sorted(held)}
        return Beat(now_ms, (moved, file.catalog), positions)

    def _call_roll(self, db: Db, now_ms: int) -> bool:
        """Answer, and strike who has been silent: whether the team is another than before."""
        me, topics = self._me, json.dumps(self._me.topics)
        # A time as far ahead was written before the clock was set back: its member beats again, or is gone.
        silent = (me.team, now_ms, me.session_ms)
        struck = db.execute("DELETE FROM member WHERE team = ? AND abs(heard_ms - ?) > ?", silent)
        heard = db.execute(
            "UPDATE member SET heard_ms = ? WHERE team = ? AND name = ? AND topics = ?",
            (now_ms, me.team, me.name, topics),
        )
        if heard.rowcount == 0:
            db.execute("REPLACE INTO member VALUES (?, ?, ?, ?)", (me.team, me.name, topics, now_ms))
        db.execute(
            "DELETE FROM holding WHERE team = ?1 AND member NOT IN (SELECT name FROM member WHERE team = ?1)",
            (me.team,),
        )
        return struck.rowcount > 0 or heard.rowcount == 0

    def _deal(self, db: Db) -> tuple[list[Place], list[Place]]:
        """The partitions that this member gives up now, and those that it takes."""
        me = self._me
        rows = db.execute("SELECT name, topics FROM member WHERE team = ?", (me.team,))
        members = {name: json.loads(topics) for name, topics in rows}
        rows = db.execute("SELECT topic, partition, member FROM holding WHERE team = ?", (me.team,))
        holder = {(topic, partition): name for topic, partition, name in rows}
        given = [place for place, name in holder.items() if name == me.name and place[0] not in me.topics]
        taken: list[Place] = []
        for topic in me.topics:
            places = [(topic, partition) for partition in range(len(self._file.topics.get(topic, ())))]
            held = Counter({name: 0 for name, its in members.items() if topic in its})
            held.update(holder[place] for place in places if holder.get(place) in held)
            mine = [place for place in places if holder.get(place) == me.name]
            due = share(topic, len(places), me.name, held)
            given += mine[due:]
            taken += [place for place in places if place not in holder][: max(0, due - len(mine))]
        return given, taken

    def _hand_over(self, db: Db, given: Sequence[Place], taken: Sequence[Place]) -> None:
        me = self._me
        gone = [(me.team, *place) for place in given]
        db.executemany("DELETE FROM holding WHERE team = ? AND topic = ? AND partition = ?", gone)
        come = [(me.team, *place, me.name) for place in taken]
        db.executemany("INSERT INTO holding VALUES (?, ?, ?, ?)", come)

    def _change_team(self, db: Db) -> int:
        change = self._file.next_change(db)
        db.execute("REPLACE INTO team VALUES (?, ?)", (self._me.team, change))
        return change

    def _held(self, db: Db) -> set[Place]:
        mine = (self._me.team, self._me.name)
        return set(db.execute("SELECT topic, partition FROM holding WHERE team = ? AND member = ?", mine))

    def _committed(self, db: Db, place: Place) -> int:
        select = 'SELECT "offset" FROM committed WHERE team = ? AND topic = ? AND partition = ?'
        row = db.execute(select, (self._me.team, *place)).fetchone()
        return row[0] if row else 0

    def _commit(self, db: Db, offsets: Mapping[Place, int]) -> None:
        held = self._held(db)
        db.executemany(
            "INSERT INTO committed VALUES (?, ?, ?, ?)"
            ' ON CONFLICT DO UPDATE SET "offset" = max("offset", excluded."offset")',
            [(self._me.team, *place, offset) for place, offset in offsets.items() if place in held],
        )

    def _strike(self, db: Db) -> None:
        """Leave the table: what was held is free at once."""
        mine = (self._me.team, self._me.name)
        db.execute("DELETE FROM holding WHERE team = ? AND member = ?", mine)
        db.execute("DELETE FROM member WHERE team = ? AND name = ?", mine)
        self._change_team(db)
