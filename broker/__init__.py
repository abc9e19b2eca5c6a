"""The wire: message forms, the partitioner, the port that brokers keep, and its twins."""
