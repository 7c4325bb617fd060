"""A TCP proxy that makes its target distant: every byte arrives half a round trip later. It changes no byte.

python bench/proxy.py LISTEN_PORT TARGET_PORT ROUND_TRIP_MS
"""

from __future__ import annotations

import queue
import socket
import sys
import threading
import time

PIECE = 1 << 20
LOOPBACK = "127.0.0.1"


def carry(source: socket.socket, sink: socket.socket, delay: float) -> None:
    """Pass on what comes from `source`, each piece `delay` seconds after it came; ends when either side does."""
    travelling: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

    def deliver() -> None:
        while True:
            due, data = travelling.get()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
            except OSError:
                return

    threading.Thread(target=deliver, daemon=True).start()
    while True:
        try:
            data = source.recv(PIECE)
        except OSError:
            data = b""
        travelling.put((time.monotonic() + delay, data))
        if not data:
            return


def serve(listen_port: int, target_port: int, round_trip_ms: float) -> None:
    """Accept connections until the process ends; print a line on standard output once it listens."""
    with socket.create_server((LOOPBACK, listen_port)) as server:
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        while True:
            near, _ = server.accept()
            far = socket.create_connection((LOOPBACK, target_port))
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=carry, args=(one, other, round_trip_ms / 2000), daemon=True).start()


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
