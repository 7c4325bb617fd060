"""A StatsD server that keeps what Ferry's tasks count."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self


class Listener:
    """Hears what an Airflow with its `environment` sends; `lines` are those of metrics whose names begin with ferry."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._receive, daemon=True)

    @property
    def environment(self) -> dict[str, str]:
        """Airflow's settings."""
        return {
            "AIRFLOW__METRICS__STATSD_ON": "True",
            "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__STATSD_PORT": str(self._socket.getsockname()[1]),
            "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": "True",
        }

    def of(self, tags: str) -> list[str]:
        """The lines with these tags."""
        return [line for line in self.lines if tags in line]

    def _receive(self) -> None:
        while data := self._socket.recv(65_536):  # an empty packet is the end
            self.lines += [line for line in data.decode().splitlines() if line.startswith("airflow.ferry.")]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()
