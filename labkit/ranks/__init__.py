"""Real ranks: processes, the collectives between them, and what they did when it went wrong."""
