"""Requests in front of workers that prefill one at a time (modelled).

Open: requests come at a rate, whoever waits. Closed: clients send the next one when the last is
answered, so more clients only queue longer, and neither links nor decode shorten that queue.
"""

from __future__ import annotations

import math


def closed_queue_ttft(
    clients: int, service_seconds: float, workers: int = 1, elsewhere_seconds: float = 0.0
) -> float:
    """Seconds to the first token with `clients` that always have one request in the system.

    The workers are busy as soon as clients outnumber what they serve while a request is elsewhere
    (decoding, or with its client): then each waits for all others of its worker. The bound of a
    closed network; with few clients it is a little low.

    Raises:
        ValueError: a number out of its range.
    """
    _require_counts(clients=clients, workers=workers)
    _require_seconds(service_seconds=service_seconds, elsewhere_seconds=elsewhere_seconds)
    return max(service_seconds, clients * service_seconds / workers - elsewhere_seconds)


def open_queue_wait(rate: float, service_seconds: float, workers: int = 1) -> float:
    """Mean seconds that a request waits before its prefill starts, where they come at random.

    An M/D/1 queue for each worker, requests dealt evenly: rho s / (2 (1 - rho)). Infinite where
    they come faster than they are served. Bursts wait longer.

    Raises:
        ValueError: a number out of its range.
    """
    _require_counts(workers=workers)
    _require_seconds(service_seconds=service_seconds)
    if not 0 <= rate < math.inf:
        raise ValueError(f"rate is {rate!r}; it must be at least 0 requests a second, and finite")
    load = rate * service_seconds / workers
    return math.inf if load >= 1 else load * service_seconds / (2 * (1 - load))


def largest_rate(service_seconds: float, longest_wait: float, workers: int = 1) -> float:
    """Requests a second at which the mean wait of `open_queue_wait` is `longest_wait`.

    Raises:
        ValueError: a number out of its range.
    """
    _require_counts(workers=workers)
    _require_seconds(service_seconds=service_seconds)
    if longest_wait <= 0:
        return 0.0
    if math.isinf(longest_wait):
        return workers / service_seconds
    load = 2 * longest_wait / (service_seconds + 2 * longest_wait)
    return workers * load / service_seconds


def _require_counts(**counts: int) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1")


def _require_seconds(**seconds: float) -> None:
    for name, value in seconds.items():
        low = value >= 0 if name == "elsewhere_seconds" else value > 0
        if not (low and value < math.inf):
            raise ValueError(f"{name} is {value!r} s; it must be above 0, and finite")
