"""
The built-in transport for machines without torch: TCP, a store at rank 0, a full mesh as gloo makes, a ring all-reduce.

It moves the bytes a ring all-reduce moves (Patarasuk & Yuan 2009: 2(N-1) exchanges of S/N), in gloo's shape, but adds
nothing up: what is measured is the wire. Reports label it ``built-in ring``.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import socket
import struct
import time
from contextlib import suppress

_SIOCGIFADDR = 0x8915  # linux/sockios.h
_HEADER = struct.Struct("=II4s")  # rank, port, address to be called at


class RingTransport:
    """The same environment variables as torch reads: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE."""

    label = "built-in ring"

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self._ip = _own_address()
        self._peers: dict[int, socket.socket] = {}
        if self.size > 1:
            self._mesh(self._rendezvous())

    def _rendezvous(self) -> tuple[socket.socket, list[tuple[str, int]]]:
        """Everybody tells rank 0 its port and learns all addresses."""
        listener = socket.create_server(("", 0), backlog=self.size)
        port = listener.getsockname()[1]
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        return listener, self._serve(address[1], port) if self.rank == 0 else self._ask(address, port)

    def _serve(self, store_port: int, port: int) -> list[tuple[str, int]]:
        deadline = time.monotonic() + self._timeout
        table = [("", 0)] * self.size
        table[0] = (self._ip, port)
        with socket.create_server(("", store_port), backlog=self.size) as store:
            clients: list[socket.socket] = []
            while len(clients) < self.size - 1:
                store.settimeout(max(0.01, deadline - time.monotonic()))
                try:
                    client, _ = store.accept()
                except TimeoutError:
                    raise TimeoutError(f"waiting for clients. {len(clients) + 1}/{self.size} clients joined.") from None
                client.settimeout(self._timeout)
                rank, their_port, ip = _HEADER.unpack(_exactly(client, _HEADER.size))
                table[rank] = (socket.inet_ntoa(ip), their_port)
                clients.append(client)
            packed = b"".join(socket.inet_aton(ip) + struct.pack("=I", p) for ip, p in table)
            for client in clients:
                client.sendall(packed)
                client.close()
        return table

    def _ask(self, address: tuple[str, int], port: int) -> list[tuple[str, int]]:
        with self._dial(address, "the rendezvous") as store:
            store.sendall(_HEADER.pack(self.rank, port, socket.inet_aton(self._ip)))
            packed = _exactly(store, 8 * self.size)
        return [
            (socket.inet_ntoa(packed[i : i + 4]), struct.unpack_from("=I", packed, i + 4)[0])
            for i in range(0, len(packed), 8)
        ]

    def _dial(self, address: tuple[str, int], what: str) -> socket.socket:
        """Connect, trying again while refused (the other side may still be starting), until the timeout."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                connection = socket.create_connection(address, timeout=max(0.05, deadline - time.monotonic()))
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"timed out connecting to {what} at {address[0]}:{address[1]}: refused") from None
                time.sleep(0.05)
                continue
            except TimeoutError:
                raise TimeoutError(f"timed out connecting to {what} at {address[0]}:{address[1]}") from None
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection

    def _mesh(self, joined: tuple[socket.socket, list[tuple[str, int]]]) -> None:
        """Connect to every lower rank, accept every higher one."""
        listener, table = joined
        with listener:
            for rank in range(self.rank):
                peer = self._dial(table[rank], f"rank {rank}")
                peer.sendall(_HEADER.pack(self.rank, 0, bytes(4)))
                self._peers[rank] = peer
            listener.settimeout(self._timeout)
            while len(self._peers) < self.size - 1:
                try:
                    peer, _ = listener.accept()
                except TimeoutError:
                    missing = sorted(set(range(self.size)) - set(self._peers) - {self.rank})
                    raise TimeoutError(f"ranks {missing} did not connect within {self._timeout:g} s") from None
                peer.settimeout(self._timeout)
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._peers[_HEADER.unpack(_exactly(peer, _HEADER.size))[0]] = peer
        for peer in self._peers.values():
            peer.setblocking(False)

    def all_reduce(self, bucket_bytes: list[int]) -> None:
        if self.size < 2:
            return
        following, previous = self._peers[(self.rank + 1) % self.size], self._peers[(self.rank - 1) % self.size]
        for size in bucket_bytes:
            chunk = max(1, size // self.size)
            for _ in range(2 * (self.size - 1)):
                self._exchange(following, previous, chunk)

    def _exchange(self, following: socket.socket, previous: socket.socket, size: int) -> None:
        """Send `size` bytes onward while receiving as many: both ways at once, or the ring would block itself."""
        outgoing, missing = memoryview(bytes(size)), size
        deadline = time.monotonic() + self._timeout
        with selectors.DefaultSelector() as selector:
            selector.register(previous, selectors.EVENT_READ)
            if following is previous:
                selector.modify(previous, selectors.EVENT_READ | selectors.EVENT_WRITE)
            else:
                selector.register(following, selectors.EVENT_WRITE)
            while outgoing or missing:
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    direction = "recv" if missing else "send"
                    raise TimeoutError(f"timed out after {self._timeout:g} s waiting for a {direction} to complete")
                for key, events in ready:
                    if events & selectors.EVENT_WRITE and outgoing:
                        with suppress(BlockingIOError):
                            outgoing = outgoing[following.send(outgoing) :]
                    if events & selectors.EVENT_READ and missing:
                        missing -= self._receive(previous, missing)
                    _narrow(selector, key, bool(outgoing), bool(missing))

    @staticmethod
    def _receive(previous: socket.socket, missing: int) -> int:
        try:
            data = previous.recv(min(missing, 1 << 18))
        except BlockingIOError:
            return 0
        if not data:
            raise ConnectionResetError(f"connection closed by peer {previous.getpeername()[0]}")
        return len(data)

    def other_collective(self) -> None:
        """Wait for a message nobody sends, as a rank in another collective would."""
        self._exchange(self._peers[(self.rank + 1) % self.size], self._peers[(self.rank - 1) % self.size], 1 << 30)

    def record(self, report: object) -> None:
        """It keeps none."""

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()


def _own_address() -> str:
    """The address of GLOO_SOCKET_IFNAME as gloo would take it. Raises OSError when the interface has none."""
    name = os.environ.get("GLOO_SOCKET_IFNAME", "eth0").split(",")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        try:
            answer = fcntl.ioctl(query, _SIOCGIFADDR, struct.pack("256s", name[:15].encode()))
        except OSError:
            raise OSError(f"GLOO_SOCKET_IFNAME={name}: unable to find address for this interface") from None
    return socket.inet_ntoa(answer[20:24])


def _narrow(selector: selectors.BaseSelector, key: selectors.SelectorKey, sending: bool, receiving: bool) -> None:
    """Stop watching what is done, so that a finished direction does not spin."""
    wanted = key.events
    if not sending:
        wanted &= ~selectors.EVENT_WRITE
    if not receiving:
        wanted &= ~selectors.EVENT_READ
    if wanted == key.events:
        return
    if wanted:
        selector.modify(key.fileobj, wanted)
    else:
        selector.unregister(key.fileobj)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionResetError("connection closed during the rendezvous")
        data += piece
    return data
