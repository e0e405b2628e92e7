"""`labkit bench collectives`: what it takes, where it runs, what it prints and writes.

Without torchrun each number of ranks gets a RankPool of its own. Under torchrun the first ranks of
the job do the work and the rest wait. Imports nothing heavy itself, so that `labkit --help` stays
quick.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.experiments.size_list import parse_sizes

if TYPE_CHECKING:
    from labkit.experiments.collective_rows import CollectiveTimes
    from labkit.ranks.comm import Comm

PLOTS = "labkit.plots"
"""Entry points of this group draw: `collectives(times, file)` writes a PNG."""

BYTES_PER_ELEMENT = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True)
class Request:
    """What was asked for, checked as far as it can be without starting a rank."""

    ranks: tuple[int, ...]
    sizes: tuple[int, ...]
    ops: tuple[str, ...]
    implementations: tuple[str, ...] | None
    dtype: str
    turns: int
    timeout: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Of `labkit bench`."""
    from labkit.cli import seconds_argument

    add = parser.add_argument
    add("what", choices=("collectives",), help="what to time")
    add("--ranks", metavar="N,...", help="how many (2; under torchrun, all it started)")
    add(
        "--sizes",
        default="1KiB:16MiB",
        metavar="SIZE,...",
        help="payloads: 16KiB, 1KiB:64MiB in steps of 4 times, 1KiB:64MiB:2 of 2 (%(default)s)",
    )
    add("--ops", default="all_reduce", metavar="OP,...", help="collectives (%(default)s)")
    add("--implementations", metavar="NAME,...", help="gloo, shared-memory, ... (all there are)")
    add("--dtype", choices=tuple(BYTES_PER_ELEMENT), default="float32")
    add("--turns", type=int, default=15, metavar="N", help="times of each row (%(default)s)")
    add("--json", type=Path, metavar="FILE", help="write every turn, with where it comes from")
    add("--plot", type=Path, metavar="FILE", help="draw it as a PNG")
    add(
        "--timeout",
        type=seconds_argument,
        default=600.0,
        metavar="S",
        help="seconds in all for each number of ranks (%(default)g)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Time, print, write. Everything that cannot be is refused before a rank starts."""
    from labkit.ranks import launch

    under_torchrun = launch.under_torchrun()
    request = check(arguments, int(os.environ["WORLD_SIZE"]) if under_torchrun else None)
    check_target(arguments.json, "--json", ".json")
    draw = None
    if arguments.plot is not None:
        check_target(arguments.plot, "--plot", ".png")
        draw = plotter()
    times = _under_torchrun(request) if under_torchrun else _in_pools(request)
    if times is not None:
        _show(times, arguments.json, arguments.plot, draw)
    return 0


def check(arguments: argparse.Namespace, world_size: int | None) -> Request:
    """The request in the arguments; `world_size`: what torchrun started. Raises ValueError."""
    import torch

    from labkit.experiments.collective_implementations import check_implementations, check_ops

    ranks = parse_ranks(arguments.ranks, world_size)
    sizes = parse_sizes(arguments.sizes, BYTES_PER_ELEMENT[arguments.dtype])
    ops = check_ops(_names(arguments.ops))
    implementations = None
    if arguments.implementations is not None:
        names = _names(arguments.implementations)
        implementations = check_implementations(names, ops, torch.cuda.device_count(), max(ranks))
    smallest = max(ranks) * BYTES_PER_ELEMENT[arguments.dtype]
    if min(sizes) < smallest:
        raise ValueError(
            f"{min(sizes)} B leave some of {max(ranks)} ranks nothing; the smallest is {smallest} B"
        )
    if not 1 <= arguments.turns <= 1000:
        raise ValueError(f"--turns {arguments.turns}; want 1 to 1000")
    return Request(
        ranks, sizes, ops, implementations, arguments.dtype, arguments.turns, arguments.timeout
    )


def parse_ranks(text: str | None, world_size: int | None) -> tuple[int, ...]:
    """`2,4` as numbers of ranks, each at least 2 and, under torchrun, at most what it started."""
    from labkit.ranks.placement import MAX_RANKS

    most = MAX_RANKS if world_size is None else world_size
    if most < 2:
        raise ValueError("torchrun started 1 rank, which sends nothing; want --nproc-per-node 2")
    if text is None:
        return (2 if world_size is None else world_size,)
    counts = []
    for part in text.split(","):
        if not part.strip().isdecimal():
            raise ValueError(f"--ranks {text}: {part!r} is no number of ranks; want one like 2,4")
        counts.append(int(part))
    for count in counts:
        if not 2 <= count <= most:
            started = "" if world_size is None else ", which is what torchrun started"
            raise ValueError(f"--ranks {count}: want 2 to {most}{started}")
    return tuple(dict.fromkeys(counts))


def check_target(file: Path | None, option: str, suffix: str) -> None:
    """That `file` can be written. Raises ValueError with what would do."""
    if file is None:
        return
    if file.suffix != suffix:
        raise ValueError(f"{option} {file.name}: want a name that ends with {suffix}")
    if not file.parent.is_dir():
        raise ValueError(f"{option} {file}: there is no folder {file.parent}; make it first")


def plotter() -> Callable[[CollectiveTimes, Path], None]:
    """What draws times of collectives: the course brings it, since it needs matplotlib."""
    for entry in metadata.entry_points(group=PLOTS, name="collectives"):
        return entry.load()
    raise ValueError(
        "--plot needs the course beside labkit: install it from its repository again "
        '(pip install -e ".[course]")'
    )


def _names(text: str) -> list[str]:
    return [name.strip().lower() for name in text.split(",") if name.strip()]


def _in_pools(request: Request) -> CollectiveTimes:
    from labkit.experiments.collective_rows import together
    from labkit.ranks.pool import RankPool

    parts = []
    for ranks in request.ranks:
        with RankPool(ranks, timeout=request.timeout) as pool:
            parts.append(pool.run(_time, request, on_progress=_progress(ranks))[0])
    return together(parts)


def _under_torchrun(request: Request) -> CollectiveTimes | None:
    """The result on rank 0; None on the others."""
    import torch.distributed as dist

    from labkit.experiments.collective_rows import together
    from labkit.ranks.launch import comm_from_env

    show = _progress(max(request.ranks))
    rank = int(os.environ["RANK"])
    world = comm_from_env(timeout=request.timeout, reporter=lambda value: show(rank, value))
    parts = time_first_ranks(world, request)
    dist.destroy_process_group()
    return together(parts) if rank == 0 else None


def time_first_ranks(world: Comm, request: Request) -> list[CollectiveTimes]:
    """On every rank of `world`: time its first ranks, as many as asked for, while the rest wait.

    A rank returns one result for each number of ranks that it was among.
    """
    parts = []
    for ranks in request.ranks:
        comm = world.split([list(range(ranks))], f"first {ranks}", allow_rest=True)
        if comm.size > 1:
            parts.append(_time(comm, request))
        world.barrier()
    return parts


def _time(comm: Comm, request: Request) -> CollectiveTimes:
    from labkit.experiments.collective_time import time_collectives

    return time_collectives(
        comm,
        request.sizes,
        ops=request.ops,
        implementations=request.implementations,
        turns=request.turns,
        dtype=request.dtype,
    )


def _progress(ranks: int) -> Callable[[int, Any], None]:
    """Rank 0's reports on one line of the terminal, which the table then follows."""

    def show(rank: int, value: Any) -> None:
        if rank == 0 and sys.stderr.isatty():
            print(f"\r{ranks} ranks: {value} ", end="", file=sys.stderr, flush=True)

    return show


def _show(
    times: CollectiveTimes,
    json_file: Path | None,
    plot_file: Path | None,
    draw: Callable[[CollectiveTimes, Path], None] | None,
) -> None:
    from labkit.experiments.collective_report import print_times

    if sys.stderr.isatty():
        print(file=sys.stderr)
    print_times(times)
    if json_file is not None:
        json_file.write_text(json.dumps(times.as_dict(), indent=1) + "\n")
    if draw is not None and plot_file is not None:
        draw(times, plot_file)
