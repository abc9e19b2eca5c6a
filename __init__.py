"""Minutewheel, a distributed task scheduler: never loses a task, fires within milliseconds, explains itself."""
