"""Peer: labkit with its collectives sent through gloo, as before it had shared memory."""

from __future__ import annotations

import sys

from benchmarks.peers.ours import ManyRanks
from benchmarks.protocol import serve

if __name__ == "__main__":
    serve(ManyRanks(sys.argv[1], int(sys.argv[2]), collectives="gloo").run)
