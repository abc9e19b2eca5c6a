"""The heart: the pure state machine of one owned shard, the gate, and the shell that performs what they ask for."""
