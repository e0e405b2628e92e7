"""`Mesh`: the ranks as a grid with one axis per kind of parallelism, and a `Comm` along each axis.

Ranks are numbered with tp innermost: ranks that differ only in their tp coordinate are neighbours.
With pp=2, tp=2, ranks 0 and 1 are the first stage, 2 and 3 the second.
"""

import math

import torch

from labkit.ranks.comm import Comm

AXES = ("pp", "dp", "ep", "tp")  # outermost first


class Mesh:
    """Every rank of `world` at its place in a grid of pp x dp x ep x tp.

    Attributes:
        world: the group of all ranks.
        shape: axis -> how many ranks lie along it.
        coordinates: axis -> where I am along it.
        pp, dp, ep, tp: the group of the ranks that differ from me in that axis only.
    """

    def __init__(
        self,
        world: Comm,
        *,
        pp: int = 1,
        dp: int = 1,
        ep: int = 1,
        tp: int = 1,
        collectives: str | None = None,
    ) -> None:
        """Make the groups of every axis. All ranks of `world` call it with the same sizes.

        `collectives` names what carries the collectives of every axis; None: what `world` was told,
        or for each axis the fastest that its ranks can have. `explain` says which and why.

        Raises:
            ValueError: the sizes do not multiply to the number of ranks, or what `collectives`
                names is not known or cannot be had.
        """
        self.world = world
        self.shape = dict(zip(AXES, (pp, dp, ep, tp), strict=True))
        _check_shape(self.shape, world.size)
        self._groups = {
            axis: world.split(self._lines(axis), axis, collectives=collectives) for axis in AXES
        }
        self.coordinates = {axis: comm.rank for axis, comm in self._groups.items()}
        self.pp, self.dp, self.ep, self.tp = (self._groups[axis] for axis in AXES)

    @classmethod
    def solo(cls, device: str = "cpu") -> "Mesh":
        """One rank, every axis of size 1, no process group."""
        return cls(Comm.solo(device))

    def __getitem__(self, axis: str) -> Comm:
        """The group along `axis`."""
        if axis not in self._groups:
            raise KeyError(f"a mesh has no axis {axis!r}; its axes are {', '.join(AXES)}")
        return self._groups[axis]

    def __repr__(self) -> str:
        sizes = " x ".join(f"{axis} {size}" for axis, size in self.shape.items())
        at = ", ".join(f"{axis} {place}" for axis, place in self.coordinates.items())
        return f"Mesh({sizes}; rank {self.world.rank} at {at})"

    def explain(self) -> str:
        """What carries the collectives along each axis, and why: one line per axis."""
        lines = []
        for axis, comm in self._groups.items():
            if comm.transport is None:
                lines.append(f"{axis}: 1 rank ({comm.transport_reason})")
            else:
                over = f"{comm.size} ranks over {comm.transport.name}"
                lines.append(f"{axis}: {over} ({comm.transport_reason})")
        return "\n".join(lines)

    def _lines(self, axis: str) -> list[list[int]]:
        """The ranks along `axis`, one list for each place on the other axes."""
        grid = torch.arange(self.world.size).view(*self.shape.values())
        return grid.movedim(AXES.index(axis), -1).reshape(-1, self.shape[axis]).tolist()


def _check_shape(shape: dict[str, int], size: int) -> None:
    """The axes must multiply to `size`; the error proposes the nearest change of one axis."""
    for axis, length in shape.items():
        if length < 1:
            raise ValueError(f"axis {axis} of a mesh has size {length}; the smallest is 1")
    needed = math.prod(shape.values())
    if needed == size:
        return
    sizes = " x ".join(f"{axis} {length}" for axis, length in shape.items())
    raise ValueError(
        f"a mesh of {sizes} has {needed} places, and there are {size} ranks; "
        f"{_proposal(shape, size)}"
    )


def _proposal(shape: dict[str, int], size: int) -> str:
    """What would be legal: another size for one axis, or another number of ranks."""
    needed = math.prod(shape.values())
    fits = []
    for axis in reversed(AXES):
        length, left = divmod(size, needed // shape[axis])
        if left == 0:
            fits.append(f"{axis}={length}")
    start = f"start {needed} ranks"
    return f"use {' or '.join(fits)}, or {start}" if fits else start
