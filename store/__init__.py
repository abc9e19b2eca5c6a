"""The words of what is stored (task, filing, progress), the port that stores keep, and its twins."""
