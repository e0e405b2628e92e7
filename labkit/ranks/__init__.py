"""Real ranks: processes, the collectives between them, and what they were doing when it went wrong."""
