"""Seeded histories of the real code in virtual time: owners that overlap, pause and crash; writes that land late."""
