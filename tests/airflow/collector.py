"""A collector of OpenTelemetry's metrics and OpenLineage's events that keeps what Ferry's tasks tell."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

PATH = "/v1/metrics"
"""Where exporters of OTLP over HTTP send metrics."""

EVENTS = "api/v1/lineage"
"""Where OpenLineage's transport of kind http sends events."""

Tags = frozenset[tuple[str, str]]


class Collector:
    """Hears what an Airflow with its `environment` tells.

    `values` are of metrics whose names begin with ferry, `events` OpenLineage's.
    """

    def __init__(self) -> None:
        self.values: dict[tuple[str, Tags], float] = {}
        self.events: list[dict[str, Any]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == PATH:
                    collector._keep(body)
                elif self.path == f"/{EVENTS}":
                    collector.events.append(json.loads(body))
                self.send_response(200 if self.path in (PATH, f"/{EVENTS}") else 404)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def environment(self) -> dict[str, str]:
        """Airflow's settings, and OpenTelemetry's own."""
        address = f"http://127.0.0.1:{self._server.server_port}"
        return {
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": address,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "http", "url": address, "endpoint": EVENTS}),
        }

    def of(self, **tags: str) -> Mapping[str, float]:
        """The newest values by metric, of exactly these tags."""
        wanted = frozenset(tags.items())
        return {name: value for (name, found), value in self.values.items() if found == wanted}

    def event(self, job: str, kind: str) -> dict[str, Any] | None:
        """The last event of that kind of a job, `dag.task`; None: there is none yet."""
        return next(
            (one for one in reversed(self.events) if (one["job"]["name"], one["eventType"]) == (job, kind)), None
        )

    def _keep(self, body: bytes) -> None:
        request = ExportMetricsServiceRequest.FromString(body)
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    if metric.name.startswith("airflow.ferry."):
                        for point in (*metric.sum.data_points, *metric.gauge.data_points):
                            tags = frozenset((tag.key, tag.value.string_value) for tag in point.attributes)
                            value = point.as_int if point.HasField("as_int") else point.as_double
                            self.values[metric.name, tags] = value

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
