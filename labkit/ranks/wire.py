"""What travels between the parent and a rank: frames on a socket, and how objects are pickled.

Functions and classes written in a notebook cell or a script go by value (cloudpickle), imported
modules by name. Tensors go as their own bytes: a view does not drag its whole storage along, and a
GPU tensor arrives on the CPU, so that the parent never touches CUDA.
"""

from __future__ import annotations

import io
import pickle
import socket
import struct
import threading
from collections.abc import Iterator
from types import CodeType
from typing import Any

import cloudpickle
import torch
from torch import Tensor

_HEADER = struct.Struct("<BQQ")  # kind, number of the call, length of the body


Frame = tuple[int, int, bytearray]  # kind, number of the call, body


class Kind:
    """Kinds of frame. Downwards: CALL, PUT, FREE, STOP. Upwards: the others."""

    CALL, PUT, FREE, READY, PROGRESS, RETURNED, RAISED = range(7)


class _Pickler(cloudpickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is CodeType:
            constructor, parts = self.dispatch_table[CodeType](obj)
            return _code, (constructor, parts, obj.co_filename)
        if type(obj) is not Tensor or obj.layout is not torch.strided:
            return super().reducer_override(obj)
        if obj.is_meta or obj.is_quantized:
            return super().reducer_override(obj)
        plain = obj.detach().resolve_conj().resolve_neg().cpu().contiguous()
        flat = plain.as_strided((plain.numel(),), (1,))  # one element may come with any stride
        data: Any = flat.view(torch.uint8).numpy()
        return _tensor, (pickle.PickleBuffer(data), obj.dtype, tuple(obj.shape), obj.requires_grad)


def _code(constructor: Any, parts: tuple[Any, ...], filename: str) -> CodeType:
    """Code with the file name it had, which cloudpickle drops and tracebacks need."""
    return constructor(*parts).replace(co_filename=filename)


def _tensor(data: Any, dtype: torch.dtype, shape: tuple[int, ...], requires_grad: bool) -> Tensor:
    if len(data) == 0:
        flat = torch.empty(0, dtype=dtype)
    else:
        flat = torch.frombuffer(bytearray(data) if isinstance(data, bytes) else data, dtype=dtype)
    return flat.reshape(shape).requires_grad_(requires_grad)


def dumps(value: Any) -> bytes | memoryview:
    """Pickle `value`; raises whatever its parts raise when they cannot be pickled."""
    stream = io.BytesIO()
    _Pickler(stream, protocol=5).dump(value)
    return stream.getbuffer()


def loads(body: bytes | bytearray | memoryview) -> Any:
    return pickle.loads(body)


class RebuildError(ValueError):
    """What another process pickled cannot be unpickled here."""


def rebuild(body: bytes | bytearray | memoryview) -> Any:
    """As `loads`, of what a user's object says about itself: whatever that raises is RebuildError.

    KeyboardInterrupt is the user's own and passes.
    """
    try:
        return pickle.loads(body)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise RebuildError(f"{type(error).__name__}: {text_of(error)}") from error


def text_of(error: BaseException) -> str:
    """The message of an exception, whatever its `__str__` does."""
    try:
        return str(error)
    except BaseException:
        return "<its message cannot be printed>"


class Channel:
    """One end of a socket, cut into frames. The parent reads with `frames`, a rank with `wait`."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.closed = False  # the other side is gone
        self._buffer = bytearray()
        self._sending = threading.Lock()  # threads of a rank may report progress

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def send(self, kind: int, body: bytes | memoryview = b"", number: int = 0) -> None:
        """Send one frame of call `number`; raises OSError when the other side is gone."""
        header = _HEADER.pack(kind, number, len(body))
        with self._sending:
            if len(body) < 65536:
                self.sock.sendall(header + bytes(body))
            else:
                self.sock.sendall(header)
                self.sock.sendall(body)

    def send_within(
        self, seconds: float, kind: int, body: bytes | memoryview, number: int = 0
    ) -> None:
        """Like `send`, but gives up silently when the other side is gone or takes nothing."""
        self.sock.settimeout(None if seconds == float("inf") else seconds)
        try:
            self.send(kind, body, number)
        except OSError:
            pass
        finally:
            self.sock.settimeout(None)

    def frames(self) -> Iterator[Frame]:
        """The whole frames that have arrived, after one read that does not wait.

        Sets `closed` when the other side is gone.
        """
        try:
            data = self.sock.recv(1 << 20, socket.MSG_DONTWAIT)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.closed = True
        self._buffer += data
        yield from self._complete()

    def wait(self) -> Frame | None:
        """Wait for one frame; None once the other side is gone."""
        while True:
            frame = next(self._complete(), None)
            if frame is not None:
                return frame
            try:
                data = self.sock.recv(1 << 20)
            except ConnectionError:
                return None
            if not data:
                return None
            self._buffer += data

    def _complete(self) -> Iterator[Frame]:
        while len(self._buffer) >= _HEADER.size:
            kind, number, size = _HEADER.unpack_from(self._buffer)
            end = _HEADER.size + size
            if len(self._buffer) < end:
                return
            body = self._buffer[_HEADER.size : end]
            del self._buffer[:end]
            yield kind, number, body
