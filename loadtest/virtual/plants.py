"""Would the proof notice a fault? Three that are put in on purpose, in the middle of the day.

loss       one row is never read from its bucket
duplicate  one published task reaches the broker twice
early      one task is taken from the wheel before its time
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from .player import Player, Track

Plant = Literal["loss", "duplicate", "early"]


def planted(plant: Plant, player: "Player", track: "Track") -> None:
    """Put it into a dispatcher's day, where that has not passed it yet."""
    span = track.profile.span
    minute = track.rows.first + span[len(span) // 2]
    if plant == "loss":
        dues = track.rows.dues(minute)
        asked = {change.place for change in track.profile.changes(track.shard, minute - track.rows.first, dues)}
        # The last of them: a page that is short is taken for the end of its bucket.
        place = next(place for place in reversed(range(len(dues))) if place not in asked)
        track.shelf.hidden = track.rows.filing(minute, place)
    else:
        player.plant(plant, minute)
