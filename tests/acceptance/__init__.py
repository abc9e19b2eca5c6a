"""Whole processes, killed and restarted; a package, so that the fault test has its load in a module of its own."""
