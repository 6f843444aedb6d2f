"""TcpProxy: the network between one process and the API server, to be cut, slowed and repaired by a test.

It passes bytes on and knows nothing of TLS, so the certificate of the server has to be good for 127.0.0.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class TcpProxy:
    """Listens on a port of its own and connects to `target`.

    Attributes:
        delay: seconds that each piece towards the server is held back.
        cut: nothing passes in either direction, and nobody is told: as when a cable is pulled.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self.port = 0
        self.delay = 0.0
        self._passing = asyncio.Event()
        self._passing.set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def cut(self) -> bool:
        return not self._passing.is_set()

    @cut.setter
    def cut(self, cut: bool) -> None:
        if cut:
            self._passing.clear()
        else:
            self._passing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._passing.wait()
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._pump(reader, upstream_writer, towards=True))
                    tasks.create_task(self._pump(upstream_reader, writer, towards=False))
            finally:
                upstream_writer.close()
        except* (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, towards: bool) -> None:
        while piece := await reader.read(65536):
            if towards and self.delay:
                await asyncio.sleep(self.delay)
            await self._passing.wait()
            if reader.exception() is not None:
                return  # taken back by its sender, as TCP does for what was never confirmed
            writer.write(piece)
            await writer.drain()
        raise EOFError

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        for task in list(self._tasks):
            with suppress(asyncio.CancelledError):
                await task


@asynccontextmanager
async def tcp_proxy(target: int) -> AsyncIterator[TcpProxy]:
    """A proxy until the block ends."""
    proxy = TcpProxy(target)
    server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
