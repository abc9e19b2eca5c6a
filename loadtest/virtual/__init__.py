"""A day of load in virtual time: the real wheel, gate and shards, between a store and a broker that count."""
