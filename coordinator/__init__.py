"""Who may dispatch which shard: leases, fences and balance, the port, and its twins."""
