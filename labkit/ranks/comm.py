"""`Comm`: one process group and its collectives.

Tensors go in and come out with their own shape and dtype; ranks are counted within the group.
A group of one sends nothing but checks its arguments all the same.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from labkit.ranks import checks, collectives
from labkit.ranks.flight import FlightRecorder
from labkit.ranks.flight_group import Splits
from labkit.ranks.transport import BackendTransport, Transport
from labkit.ranks.transport_choice import check_transport, choose_transport, told_by


def _ignore(value: Any) -> None:
    pass


def _value_of(x: Tensor) -> Tensor:
    """`x` without its history."""
    return x.detach() if x.requires_grad else x


class _Noted:
    """Around an operation that the flight recorder was told of: tells it when that is over."""

    __slots__ = ("_recorder",)

    def __init__(self, recorder: FlightRecorder) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self._recorder.leave()


class Comm:
    """A group of ranks that work together.

    Attributes:
        rank: my place in this group, 0 to `size` - 1.
        size: how many ranks the group has.
        ranks: the group's ranks as the world counts them, ascending.
        name: "world", "tp", ...
        device: where tensors must live.
        transport: what carries the collectives; None in a group of one.
        transport_reason: why this one, in a sentence.
    """

    def __init__(
        self,
        group: dist.ProcessGroup | None,
        *,
        name: str,
        ranks: Sequence[int],
        device: torch.device | str = "cpu",
        recorder: FlightRecorder | None = None,
        reporter: Callable[[Any], None] | None = None,
        timeout: timedelta | None = None,
    ) -> None:
        """Wrap `group`; None stands for a group of one, which needs no process group.

        `ranks` are the world ranks in it. `timeout` is passed on to the groups that `split` makes.
        """
        self.ranks = tuple(ranks)
        self.size = len(self.ranks)
        self.rank = 0 if group is None else group.rank()
        self.name = name
        self.device = torch.device(device)
        self._is_on_cpu = self.device.type == "cpu"
        self._group = self._p2p_group = group
        self._recorder = recorder or FlightRecorder.null()
        is_world = group is not None and group is dist.group.WORLD
        self._noted_group = self._recorder.group(name, None if is_world else self.ranks)
        self._reporter = reporter or _ignore
        self._timeout = timeout
        self._told: str | None = None
        self.transport: Transport | None = None
        self.transport_reason = "a group of one sends nothing"
        if group is not None:
            self.transport = BackendTransport(group, self.device)
            self.transport_reason = "nothing else was looked for"
        if group is None and self.size > 1:
            raise ValueError(f"a group of {self.size} ranks needs a process group")

    @classmethod
    def solo(
        cls,
        device: torch.device | str = "cpu",
        *,
        name: str = "solo",
        world_rank: int = 0,
        recorder: FlightRecorder | None = None,
        reporter: Callable[[Any], None] | None = None,
    ) -> "Comm":
        """A group of one: no process group, nothing sent."""
        return cls(
            None,
            name=name,
            ranks=(world_rank,),
            device=device,
            recorder=recorder,
            reporter=reporter,
        )

    @classmethod
    def world(
        cls,
        device: torch.device | str = "cpu",
        *,
        recorder: FlightRecorder | None = None,
        reporter: Callable[[Any], None] | None = None,
        timeout: timedelta | None = None,
        collectives: str | None = None,
    ) -> "Comm":
        """Every rank of the process group that `torch.distributed.init_process_group` made.

        `collectives` names the transport; None: what LABKIT_COLLECTIVES says, or the fastest.
        """
        if not dist.is_initialized():
            raise RuntimeError(
                "there is no process group yet: run this through RankPool or `labkit run`, "
                "or use Comm.solo() for one rank"
            )
        if dist.get_world_size() == 1:
            return cls.solo(device, name="world", recorder=recorder, reporter=reporter)
        comm = cls(
            dist.group.WORLD,
            name="world",
            ranks=range(dist.get_world_size()),
            device=device,
            recorder=recorder,
            reporter=reporter,
            timeout=timeout,
        )
        told = told_by() if collectives is None else check_transport(collectives)
        comm._agree_on(f"the ranks were told to use different transports; here: {told}")
        comm._connect(told)
        return comm

    def __repr__(self) -> str:
        over = "" if self.transport is None else f", {self.transport.name}"
        return f"Comm({self.name!r}, rank {self.rank} of {self.size}, {self.device}{over})"

    # -- collectives: every rank of the group must call the same one ---------------------------

    def all_reduce(self, x: Tensor, op: str = "sum") -> Tensor:
        """Reduce `x` over the group, in place on every rank. `op`: sum, max, min or avg."""
        self._check("all_reduce", x, in_place=True)
        checks.check_reduction("all_reduce", op, x.dtype)
        if self.transport is not None:
            detail = "" if op == "sum" else op
            self._recorder.enter(self._noted_group, "all_reduce", x.shape, x.dtype, detail=detail)
            try:  # as `_noted` does, which takes longer
                self.transport.all_reduce(_value_of(x), op)
            finally:
                self._recorder.leave()
        return x

    def all_gather(self, x: Tensor, dim: int = 0) -> Tensor:
        """The tensors of all ranks (equal shapes), in rank order, concatenated along `dim`."""
        self._check("all_gather", x)
        dim = checks.normal_dim("all_gather", x, dim)
        if self.transport is None:
            return x.clone()
        with self._noted("all_gather", x):
            return self.transport.all_gather(_value_of(x), dim)

    def reduce_scatter(self, x: Tensor, dim: int = 0, op: str = "sum") -> Tensor:
        """Reduce over the group, keep my part of `dim`: part `rank` of `size` equal ones."""
        self._check("reduce_scatter", x)
        checks.check_reduction("reduce_scatter", op, x.dtype)
        dim = checks.normal_dim("reduce_scatter", x, dim)
        checks.check_divides("reduce_scatter", x.shape[dim], dim, self.size)
        if self.transport is None:
            return x.clone()
        unusual = [op] * (op != "sum") + [f"dim {dim}"] * (dim != 0)
        with self._noted("reduce_scatter", x, detail=", ".join(unusual)):
            return self.transport.reduce_scatter(_value_of(x), dim, op)

    def broadcast(self, x: Tensor, src: int = 0) -> Tensor:
        """Copy rank `src`'s `x` into every rank's `x`, in place."""
        self._check("broadcast", x, in_place=True)
        checks.check_rank("broadcast", src, self.size)
        if self.transport is not None:
            with self._noted("broadcast", x, self.ranks[src]):
                self.transport.broadcast(_value_of(x), src)
        return x

    def all_to_all(
        self,
        x: Tensor,
        input_splits: Sequence[int] | None = None,
        output_splits: Sequence[int] | None = None,
    ) -> Tensor:
        """Send rows `input_splits[r]` of `x` to each rank r; return what arrives, in rank order.

        Without `input_splits` the rows are cut evenly. With them but without `output_splits`
        the ranks first tell each other their counts, which costs one more small all-to-all.
        """
        self._check("all_to_all", x)
        checks.normal_dim("all_to_all", x, 0)
        rows = x.shape[0]
        if input_splits is None:
            checks.check_divides("all_to_all", rows, 0, self.size)
            sent = [rows // self.size] * self.size
        else:
            sent = checks.check_splits("input_splits", input_splits, self.size, rows)
        if output_splits is not None:
            came = checks.check_splits("output_splits", output_splits, self.size)
            checks.check_own_split(self.rank, sent, came)
        elif input_splits is not None:
            came = self.exchange_counts(x, sent)
        else:
            came = sent
        if self.transport is None:
            return x.clone()
        splits = Splits(self.rank, tuple(sent), tuple(came))
        with self._noted("all_to_all", x, splits=splits):
            return self.transport.all_to_all(_value_of(x), sent, came)

    def exchange_counts(self, x: Tensor, input_splits: Sequence[int]) -> list[int]:
        """The `output_splits` that go with these `input_splits` of `x`: one small all-to-all."""
        self._check("all_to_all", x)
        checks.normal_dim("all_to_all", x, 0)
        sent = checks.check_splits("input_splits", input_splits, self.size, x.shape[0])
        return self.all_to_all(torch.tensor(sent, device=self.device)).tolist()

    def barrier(self) -> None:
        """Wait until every rank of the group is here."""
        if self.transport is not None:
            with self._noted("barrier"):
                self.transport.barrier()

    # -- from one rank to another --------------------------------------------------------------

    def send(self, x: Tensor, dst: int) -> None:
        """Send `x` to rank `dst`, which must `recv` the same shape and dtype."""
        self._check("send", x)
        peer = checks.check_peer("send", dst, self)
        with self._noted("send", x, peer):
            collectives.send(x.detach(), peer, self._p2p_group)

    def recv(self, x: Tensor, src: int) -> Tensor:
        """Fill `x` with what rank `src` sends; returns `x`."""
        self._check("recv", x, in_place=True)
        peer = checks.check_peer("recv", src, self)
        with self._noted("recv", x, peer):
            collectives.recv(x.detach(), peer, self._p2p_group)
        return x

    def send_recv(self, x: Tensor, dst: int, out: Tensor, src: int) -> Tensor:
        """Send `x` to `dst` while filling `out` from `src`: a ring of these cannot deadlock."""
        self._check("send_recv", x)
        self._check("send_recv", out, in_place=True)
        checks.check_exchange(x, dst, out, src, self)
        if dst == self.rank:
            return out.copy_(x)
        peer, source, incoming = self.ranks[dst], self.ranks[src], (out.shape, out.dtype)
        with self._noted("send_recv", x, peer, source=source, incoming=incoming):
            collectives.send_recv(x.detach(), peer, out.detach(), source, self._p2p_group)
        return out

    # -- smaller groups, and word to whoever launched the ranks -------------------------------

    def over(self, name: str) -> "Comm":
        """The same ranks over another transport; every rank calls it with the same `name`.

        Sends and receives stay as they are, and so does this group.

        Raises:
            ValueError: `name` is no transport, or cannot be had here.
        """
        told = check_transport(name, self.device.type)
        self._agree_on(f"over got different transports on different ranks; here: {told}")
        comm = Comm(
            self._group,
            name=self.name,
            ranks=self.ranks,
            device=self.device,
            recorder=self._recorder,
            reporter=self._reporter,
            timeout=self._timeout,
        )
        comm._p2p_group = self._p2p_group
        comm._choose_transport(told)
        return comm

    def split(
        self,
        groups: Sequence[Sequence[int]],
        name: str,
        *,
        allow_rest: bool = False,
        collectives: str | None = None,
    ) -> "Comm":
        """Cut this group into `groups` and return the one I am in.

        Every rank of this group calls it with the same `groups` (ranks of this group, ascending,
        each rank in one of them). With `allow_rest` a rank named nowhere gets a group of one.
        `collectives` names the transport; None: what this group was told, or the fastest.
        """
        checks.check_groups(groups, self.size, allow_rest)
        told = self._told
        if collectives is not None:
            told = check_transport(collectives, self.device.type)
        plan = f"{name} {[tuple(group) for group in groups]} {told or ''}".rstrip()
        self._agree_on(f"split got different groups on different ranks; here: {plan}")
        mine: tuple[int, ...] = (self.rank,)
        my_group = None
        for members in map(tuple, groups):
            group = self._new_group(members) if len(members) > 1 else None
            if self.rank in members:
                mine, my_group = members, group
        comm = Comm(
            my_group,
            name=name,
            ranks=[self.ranks[member] for member in mine],
            device=self.device,
            recorder=self._recorder,
            reporter=self._reporter,
            timeout=self._timeout,
        )
        comm._connect(told)
        return comm

    def report(self, value: Any) -> None:
        """Tell whoever launched the ranks (`on_progress` of RankPool); nobody listening: no-op."""
        self._reporter(value)

    # -- inside --------------------------------------------------------------------------------

    def _check(self, op: str, x: Tensor, in_place: bool = False) -> None:
        if not (self._is_on_cpu and isinstance(x, Tensor) and x.is_cpu):  # the cheap way to say so
            checks.check_device(op, x, self.device)
        if in_place and not x.is_contiguous():
            checks.check_in_place(op, x)

    def _noted(
        self, op: str, x: Tensor | None = None, peer: int | None = None, **more: Any
    ) -> "_Noted":
        """Tell the flight recorder what this rank is about to wait in, until the `with` ends."""
        shape, dtype = ((), "") if x is None else (x.shape, x.dtype)
        self._recorder.enter(self._noted_group, op, shape, dtype, peer=peer, **more)
        return _Noted(self._recorder)

    def _connect(self, told: str | None) -> None:
        """What all ranks of a new group do once.

        NCCL connects a group at its first operation, which needs every rank. Where torch compares
        collectives (TORCH_DISTRIBUTED_DEBUG=DETAIL) it takes a different number of sends on two
        ranks for a difference, so sends then get a group of their own.
        """
        if self._group is None:
            return
        if dist.get_debug_level() == dist.DebugLevel.DETAIL:
            self._p2p_group = self._new_group(range(self.size))
        if self.device.type == "cuda":
            for group in (self._group, self._p2p_group):
                dist.barrier(group, device_ids=[self.device.index or 0])
        self._choose_transport(told)

    def _choose_transport(self, told: str | None) -> None:
        self._told = told
        if self._group is not None:
            self.transport, self.transport_reason = choose_transport(
                self._group, self.device, told, self._timeout
            )

    def _agree_on(self, plan: str) -> None:
        """Raise ValueError with `plan` unless every rank passes the same: they would never meet."""
        mine = torch.tensor([zlib.crc32(plan.encode())], device=self.device)
        if len(set(self.all_gather(mine).tolist())) > 1:
            raise ValueError(plan)

    def _new_group(self, members: Iterable[int]) -> dist.ProcessGroup:
        """A process group of `members`. Below the world only this group's ranks take part."""
        return dist.new_group(
            [self.ranks[member] for member in members],
            timeout=self._timeout,
            use_local_synchronization=self.size < dist.get_world_size(),
        )
