"""Tensor-parallel layers. Each takes a `Comm` and holds only its own shard."""
