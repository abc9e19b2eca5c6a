"""The timing wheel: which tasks are due now, and when is the next? Pure: no clock, no I/O, no threads."""

from .run import Slice
from .wheel import Wheel

__all__ = ["Slice", "Wheel"]
