"""What do users ask for? Random commands, well formed, some through the wrong partition, some in batch records."""

from typing import TYPE_CHECKING, Literal

import msgspec
from minutewheel.broker.compose import Composer, Submission
from minutewheel.broker.media import BATCH_MSGPACK, CONTENT_TYPE
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.port import Produced
from minutewheel.broker.wire import Message
from minutewheel.store.record import Retry
from msgspec import Raw, Struct
from msgspec.structs import replace

from .deeds import drive

if TYPE_CHECKING:
    from .world import World

TENANT = "t"
Kind = Literal["submit", "cancel", "reschedule", "redrive", "discard"]
SCRIPTS = ("d", "d", "d", "d", "fd", "fd", "ffd", "sd", "fsd", "x", "fx")
QUEUES = ("mail", "mail", "mail", "mail", "mail", "silent", "nowhere")
RETRY = Retry(base_ms=700, factor=2.0, cap_ms=5_000)


class Command(Struct, eq=False):
    """One thing asked for. `firsts` are the places (shard << 61 | position) at which it stands first."""

    number: int
    kind: Kind
    key: str
    marked: bool
    due_ms: int = 0
    expires_ms: int = 0
    script: str = ""
    queue: str = ""
    firsts: list[int] = []

    @property
    def mark(self) -> str:
        return f"c{self.number}"


class Users:
    """All users of the world."""

    def __init__(self, world: "World", keys_a_shard: int) -> None:
        self._world = world
        self._composer = Composer(world.topics)
        self.keys = _keys(world.numbers, keys_a_shard)
        self.commands: list[Command] = []
        self.versions: dict[str, list[Submission]] = {}
        self.fresh = 0

    def act(self) -> None:
        """One random act."""
        random = self._world.random
        number = random.choice([1, 1, 1, 1, 1, 1, 3])
        asked = [self._command(random.choice(self.keys)) for _ in range(number)]
        self._send(asked)

    def submit_fresh(self, due_ms: int) -> str:
        """A plain task under a key of its own, for a time; its key."""
        self.fresh += 1
        key = _fresh_key(self._world.random.choice(self._world.numbers), self.fresh)
        submission = Submission(
            id=key.partition("/")[2], tenant=TENANT, queue="mail", payload=b"0:d", due=due_ms, receipt=f"fresh{key}"
        )
        drive(self._world.broker.produce([self._composer.submit(submission)]))
        return key

    def _command(self, key: str) -> tuple[Command, Message]:
        random = self._world.random
        known = self.versions.get(key)
        if not known:
            return self._submit(key)
        dice = random.random()
        if dice < 0.2:
            return self._submit_again(key)
        if dice < 0.45:
            return self._submit(key, random.choice(["replace", "replace", "replace", "keep", "reject"]))
        kinds: list[Kind] = ["cancel", "cancel", "cancel", "reschedule", "reschedule", "redrive", "redrive", "discard"]
        return self._ask(random.choice(kinds), key)

    def _due(self) -> int:
        random = self._world.random
        return self._world.now_ms + random.choice([-5_000, 0, 500, 2_000, 8_000, 20_000, 45_000, 70_000, 100_000])

    def _submit(self, key: str, on_conflict: str | None = None) -> tuple[Command, Message]:
        random = self._world.random
        number = len(self.commands)
        due_ms = max(0, self._due())
        expires_ms = due_ms + random.choice([500, 20_000]) if random.random() < 0.06 else 0
        script, queue = random.choice(SCRIPTS), random.choice(QUEUES)
        if queue == "silent":
            script = "d"
        submission = Submission(
            id=key.partition("/")[2],
            tenant=TENANT,
            queue=queue,
            payload=f"{number}:{script}".encode(),
            due=due_ms,
            priority=random.choice([None, 1, 3]),
            max_attempts=60,
            retry=RETRY,
            expires=expires_ms or None,
            on_conflict=on_conflict,  # type: ignore[arg-type]
        )
        self.versions.setdefault(key, []).append(submission)
        return self._submission(key, submission)

    def _submit_again(self, key: str) -> tuple[Command, Message]:
        return self._submission(key, self._world.random.choice(self.versions[key]))

    def _submission(self, key: str, submission: Submission) -> tuple[Command, Message]:
        command = self._note("submit", key)
        command.due_ms, command.expires_ms = int(submission.due or 0), int(submission.expires or 0)
        command.script, command.queue = submission.payload.decode(), submission.queue
        receipt = command.mark if command.marked else None
        return command, self._composer.submit(msgspec.structs.replace(submission, receipt=receipt))

    def _ask(self, kind: Kind, key: str) -> tuple[Command, Message]:
        command = self._note(kind, key)
        receipt = command.mark if command.marked else None
        ask = getattr(self._composer, kind)
        more = {}
        if kind in {"reschedule", "redrive"}:
            command.due_ms = max(0, self._due())
            more = {"due": command.due_ms}
        return command, ask(TENANT, key.partition("/")[2], receipt=receipt, **more)

    def _note(self, kind: Kind, key: str) -> Command:
        command = Command(len(self.commands), kind, key, self._world.random.random() < 0.9, firsts=[])
        self.commands.append(command)
        return command

    def _send(self, asked: list[tuple[Command, Message]]) -> None:
        """In one batch record if they are several, and sometimes twice, or through another shard's partition."""
        world = self._world
        random = world.random
        message = asked[0][1]
        if len(asked) > 1:
            value = msgspec.msgpack.encode([Raw(one.value or b"") for _, one in asked])
            message = Message(
                world.topics.submit, None, value, ((CONTENT_TYPE, BATCH_MSGPACK.encode()),), message.partition
            )
        commands = [command for command, _ in asked]
        mixed = len({shard_of(command.key) for command in commands}) > 1
        if mixed or random.random() < 0.15:  # a foreign partitioner sends a key always to the same place
            message = replace(message, partition=world.numbers[0])
        self._produce(commands, message)
        if world.strikes("submitted twice"):
            world.after(random.randrange(10, 20_000), None, self._produce, commands, message)

    def _produce(self, commands: list[Command], message: Message) -> None:
        (produced,) = drive(self._world.broker.produce([message]))
        assert isinstance(produced, Produced)
        for index, command in enumerate(commands):
            position = 1 << 54 | produced.offset << 14 | index
            command.firsts.append(produced.partition << 61 | position)
            self._world.say(
                "asked", command.kind, command.key, f"p{produced.partition}@{produced.offset}.{index}", command.script
            )


def _keys(numbers: list[int], count: int) -> list[str]:
    found: dict[int, list[str]] = {number: [] for number in numbers}
    n = 0
    while any(len(keys) < count for keys in found.values()):
        key = f"{TENANT}/k{n}"
        keys = found.get(shard_of(key))
        if keys is not None and len(keys) < count:
            keys.append(key)
        n += 1
    return [key for keys in found.values() for key in keys]


def _fresh_key(shard: int, number: int) -> str:
    n = 0
    while shard_of(key := f"{TENANT}/fresh{number}-{n}") != shard:
        n += 1
    return key
