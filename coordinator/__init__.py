"""Who may dispatch which shard: leases, fences and balance (pure), the port that coordinators keep, and its twins.

Read `lease` for how a lease is trusted, `balance` for who should own what, `port` for what is asked of a coordinator.
"""

from .balance import Changes, assign, changes
from .errors import (
    CoordinatorError,
    CoordinatorUnavailable,
    DataFolderDamaged,
    DataFolderInUse,
    FencesExhausted,
    LeaseLost,
    MemberKnown,
)
from .lease import Session, State, Trust
from .local import LocalCoordinator
from .member import Sightings, new_member_id
from .port import FENCE_LIMIT, Coordinator, Membership, Roster

__all__ = [
    "FENCE_LIMIT",
    "Changes",
    "Coordinator",
    "CoordinatorError",
    "CoordinatorUnavailable",
    "DataFolderDamaged",
    "DataFolderInUse",
    "FencesExhausted",
    "LeaseLost",
    "LocalCoordinator",
    "MemberKnown",
    "Membership",
    "Roster",
    "Session",
    "Sightings",
    "State",
    "Trust",
    "assign",
    "changes",
    "new_member_id",
]
