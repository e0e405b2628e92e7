"""`Comm`: one process group and its collectives.

Tensors go in and come out with their own shape and dtype; ranks are counted within the group.
A group of one sends nothing but checks its arguments all the same.
"""

import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from labkit.ranks import checks
from labkit.ranks.carriers import as_moved, sum_dtype
from labkit.ranks.flight import FlightRecorder

# torch 2.13 renamed these two; torch 2.6 knows only the longer names.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

_REDUCE_OPS = {
    "sum": dist.ReduceOp.SUM,
    "avg": dist.ReduceOp.SUM,
    "max": dist.ReduceOp.MAX,
    "min": dist.ReduceOp.MIN,
}


def _ignore(value: Any) -> None:
    pass


class Comm:
    """A group of ranks that work together.

    Attributes:
        rank: my place in this group, 0 to `size` - 1.
        size: how many ranks the group has.
        ranks: the group's ranks as the world counts them, ascending.
        name: "world", "tp", ...
        device: where tensors must live.
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
        self._group = group
        self._recorder = recorder or FlightRecorder.null()
        self._reporter = reporter or _ignore
        self._timeout = timeout
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
    ) -> "Comm":
        """Every rank of the process group that `torch.distributed.init_process_group` made."""
        if not dist.is_initialized():
            raise RuntimeError(
                "there is no process group yet: run this through RankPool or `labkit run`, "
                "or use Comm.solo() for one rank"
            )
        return cls(
            dist.group.WORLD,
            name="world",
            ranks=range(dist.get_world_size()),
            device=device,
            recorder=recorder,
            reporter=reporter,
            timeout=timeout,
        )

    def __repr__(self) -> str:
        return f"Comm({self.name!r}, rank {self.rank} of {self.size}, {self.device})"

    # -- collectives: every rank of the group must call the same one -------------------------

    def all_reduce(self, x: Tensor, op: str = "sum") -> Tensor:
        """Reduce `x` over the group, in place on every rank. `op`: sum, max, min or avg."""
        self._check("all_reduce", x, in_place=True)
        checks.check_reduction(op, x.dtype)
        carrier = sum_dtype(x.dtype)
        if self.size == 1:
            return x
        self._enter("all_reduce", x)
        sent = x.detach().to(carrier).contiguous()
        dist.all_reduce(sent, _reduce_op(op, x.dtype), group=self._group)
        if op == "avg":
            sent /= self.size
        self._keep(sent, x)
        self._leave()
        return x

    def all_gather(self, x: Tensor, dim: int = 0) -> Tensor:
        """The tensors of all ranks, in rank order, concatenated along `dim`. Equal shapes."""
        self._check("all_gather", x)
        dim = checks.normal_dim("all_gather", x, dim)
        if self.size == 1:
            return x.clone()
        self._enter("all_gather", x)
        gathered = x.new_empty((self.size, *x.shape))
        _all_gather(
            as_moved(gathered.flatten()), as_moved(x.detach().contiguous().flatten()), self._group
        )
        self._leave()
        return gathered.flatten(0, 1) if dim == 0 else torch.cat(gathered.unbind(), dim)

    def reduce_scatter(self, x: Tensor, dim: int = 0, op: str = "sum") -> Tensor:
        """Reduce over the group, keep my part of `dim`: part `rank` of `size` equal ones."""
        self._check("reduce_scatter", x)
        checks.check_reduction(op, x.dtype)
        carrier = sum_dtype(x.dtype)
        dim = checks.normal_dim("reduce_scatter", x, dim)
        checks.check_divides("reduce_scatter", x.shape[dim], dim, self.size)
        if self.size == 1:
            return x.clone()
        self._enter("reduce_scatter", x)
        parts = torch.stack(x.detach().to(carrier).tensor_split(self.size, dim))
        mine = torch.empty_like(parts[0])
        _reduce_scatter(mine.view(-1), parts.view(-1), _reduce_op(op, x.dtype), self._group)
        if op == "avg":
            mine /= self.size
        self._leave()
        return mine.to(x.dtype)

    def broadcast(self, x: Tensor, src: int = 0) -> Tensor:
        """Copy rank `src`'s `x` into every rank's `x`, in place."""
        self._check("broadcast", x, in_place=True)
        checks.check_rank("broadcast", src, self.size)
        if self.size == 1:
            return x
        self._enter("broadcast", x, peer=src)
        sent = x.detach().contiguous()
        dist.broadcast(as_moved(sent), self.ranks[src], group=self._group)
        self._keep(sent, x)
        self._leave()
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
        if output_splits is None:
            came = sent if input_splits is None else self._exchange_counts(sent)
        else:
            came = checks.check_splits("output_splits", output_splits, self.size, None)
        checks.check_own_split(self.rank, sent, came)
        if self.size == 1:
            return x.clone()
        self._enter("all_to_all", x)
        out = x.new_empty((sum(came), *x.shape[1:]))
        row_shape = (-1, max(1, x.shape[1:].numel()))
        if x.shape[1:].numel():
            dist.all_to_all_single(
                as_moved(out.view(row_shape)),
                as_moved(x.detach().contiguous().view(row_shape)),
                came,
                sent,
                group=self._group,
            )
        self._leave()
        return out

    def barrier(self) -> None:
        """Wait until every rank of the group is here."""
        if self.size == 1:
            return
        self._recorder.enter(self.name, "barrier", (), "")
        devices = [self.device.index or 0] if self.device.type == "cuda" else None
        dist.barrier(self._group, device_ids=devices)
        self._leave()

    # -- from one rank to another ------------------------------------------------------------

    def send(self, x: Tensor, dst: int) -> None:
        """Send `x` to rank `dst`, which must `recv` the same shape and dtype."""
        self._check("send", x)
        checks.check_rank("send", dst, self.size, me=self.rank)
        self._enter("send", x, peer=dst)
        dist.send(as_moved(x.detach().contiguous()), self.ranks[dst], group=self._group)
        self._leave()

    def recv(self, x: Tensor, src: int) -> Tensor:
        """Fill `x` with what rank `src` sends; returns `x`."""
        self._check("recv", x, in_place=True)
        checks.check_rank("recv", src, self.size, me=self.rank)
        self._enter("recv", x, peer=src)
        arrived = x.detach().contiguous()
        dist.recv(as_moved(arrived), self.ranks[src], group=self._group)
        self._keep(arrived, x)
        self._leave()
        return x

    def send_recv(self, x: Tensor, dst: int, out: Tensor, src: int) -> Tensor:
        """Send `x` to `dst` while filling `out` from `src`: a ring of these cannot deadlock."""
        self._check("send_recv", x)
        self._check("send_recv", out, in_place=True)
        checks.check_rank("send_recv", dst, self.size)
        checks.check_rank("send_recv", src, self.size)
        checks.check_self_exchange(self.rank, x, dst, out, src)
        if dst == self.rank:
            out.copy_(x)
            return out
        self._enter("send_recv", x, peer=dst)
        arrived = out.detach().contiguous()
        sent = x.detach().contiguous()
        both = [
            dist.P2POp(dist.isend, as_moved(sent), self.ranks[dst], self._group),
            dist.P2POp(dist.irecv, as_moved(arrived), self.ranks[src], self._group),
        ]
        for work in dist.batch_isend_irecv(both):
            work.wait()
        self._keep(arrived, out)
        self._leave()
        return out

    # -- smaller groups, and word to whoever launched the ranks -------------------------------

    def split(
        self, groups: Sequence[Sequence[int]], name: str, *, allow_rest: bool = False
    ) -> "Comm":
        """Cut this group into `groups` and return the one I am in.

        Every rank of this group calls it with the same `groups` (ranks of this group, ascending,
        each rank in one of them). With `allow_rest` a rank named nowhere gets a group of one.
        """
        checks.check_groups(groups, self.size, allow_rest)
        self._agree_on(f"{name} {[tuple(group) for group in groups]}")
        mine, my_group = (self.rank,), None
        for members in map(tuple, groups):
            group = self._new_group(members) if len(members) > 1 else None
            if self.rank in members:
                mine, my_group = members, group
        return Comm(
            my_group,
            name=name,
            ranks=[self.ranks[member] for member in mine],
            device=self.device,
            recorder=self._recorder,
            reporter=self._reporter,
            timeout=self._timeout,
        )

    def report(self, value: Any) -> None:
        """Tell whoever launched the ranks (`on_progress` of RankPool); nobody listening: no-op."""
        self._reporter(value)

    # -- inside --------------------------------------------------------------------------------

    def _check(self, op: str, x: Tensor, in_place: bool = False) -> None:
        checks.check_device(op, x, self.device)
        if in_place:
            checks.check_in_place(op, x)

    def _enter(self, op: str, x: Tensor, peer: int | None = None) -> None:
        world_peer = None if peer is None else self.ranks[peer]
        dtype = str(x.dtype).removeprefix("torch.")
        self._recorder.enter(self.name, op, tuple(x.shape), dtype, peer=world_peer)

    def _leave(self) -> None:
        self._recorder.leave()

    @staticmethod
    def _keep(result: Tensor, x: Tensor) -> None:
        """Copy `result` into `x` unless it is the same memory already."""
        if result.data_ptr() != x.data_ptr() or result.dtype != x.dtype:
            x.detach().copy_(result)

    def _exchange_counts(self, sent: list[int]) -> list[int]:
        counts = torch.tensor(sent, device=self.device)
        return [int(n) for n in self.all_to_all(counts)]

    def _agree_on(self, plan: str) -> None:
        """Every rank must pass the same `plan`, or the groups made from it would never meet."""
        mine = torch.tensor([zlib.crc32(plan.encode())], device=self.device)
        if len(set(self.all_gather(mine).tolist())) > 1:
            raise ValueError(f"split got different groups on different ranks; here: {plan}")

    def _new_group(self, members: tuple[int, ...]) -> dist.ProcessGroup:
        """A process group of `members`. Below the world only this group's ranks take part."""
        part_of_world = self.size < dist.get_world_size()
        return dist.new_group(
            [self.ranks[member] for member in members],
            timeout=self._timeout,
            use_local_synchronization=part_of_world,
        )


def _reduce_op(op: str, dtype: torch.dtype) -> Any:
    """Sum of bools is their "or", which is the maximum of their bytes."""
    return _REDUCE_OPS["max" if dtype == torch.bool and op == "sum" else op]
