"""Measurements: what Minutewheel does with many tasks, beside what others do."""
