"""How does a member reach the coordinator, and what if it does not?"""

from collections.abc import Callable

from minutewheel.coordinator import CoordinatorUnavailable, LocalCoordinator, Membership


class Line:
    """A member's connection to the coordinator, and its session in one: the port with cuts. A cut counts as a break."""

    def __init__(self, coordinator: LocalCoordinator, monotonic_ms: Callable[[], int]) -> None:
        self.breaks = 0
        self._coordinator = coordinator
        self._monotonic_ms = monotonic_ms
        self._cut_until_ms = 0
        self._session: Membership

    def cut(self, until_ms: int) -> None:
        self.breaks += 1
        self._cut_until_ms = until_ms

    async def join(self, member: str) -> "Line":
        self._session = await self._coordinator.join(member)
        return self

    @property
    def session_timeout_ms(self) -> int:
        return self._session.session_timeout_ms

    async def renew(self) -> None:
        self._check()
        await self._session.renew()

    async def members(self) -> frozenset[str]:
        self._check()
        return await self._session.members()

    async def owners(self) -> dict[int, str]:
        self._check()
        return await self._session.owners()

    async def acquire(self, shard: int, above: int = 0) -> int | None:
        self._check()
        return await self._session.acquire(shard, above)

    async def release(self, shard: int) -> None:
        self._check()
        await self._session.release(shard)

    async def leave(self) -> None:
        await self._session.leave()

    def _check(self) -> None:
        if self._monotonic_ms() < self._cut_until_ms:
            raise CoordinatorUnavailable("cut off")
