"""What can go wrong at the store, told apart by what the caller must do."""


class StoreError(Exception):
    """The store did not do what it was asked."""


class NotApplied(StoreError):
    """Certainly not done: it may be tried again as it is."""


class UnknownOutcome(StoreError):
    """Done or not, nobody knows: a plain write is repeated, a conditional one resolved by a serial read first."""


class ClaimRefused(StoreError):
    """A shard's stored fence is not below the one offered; `stored` is that fence."""

    def __init__(self, stored: int) -> None:
        super().__init__(f"the stored fence is {stored}")
        self.stored = stored


class NoSchema(StoreError):
    """Nothing of ours is where the tables should be."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} is not set up: run `minutewheel setup`")


class NewerSchema(StoreError):
    """A later release has made the file, with tables that this one does not know."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema {found}, this release knows {known}: upgrade it, or use another data folder"
        )
        self.found = found
        self.known = known
