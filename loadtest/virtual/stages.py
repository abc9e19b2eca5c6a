"""Where does the time of a played day go?"""

from time import perf_counter


class Stages:
    """Seconds by stage: each span ends where the next begins, so their sum is the whole."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = perf_counter()

    def begin(self) -> None:
        self._since = perf_counter()

    def end(self, stage: str) -> None:
        """What went on until now belongs to this stage."""
        now = perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._since
        self._since = now
