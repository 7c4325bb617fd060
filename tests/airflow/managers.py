"""Cluster managers with scripted answers, which have a driver in the cluster: YARN's REST API, Kubernetes' client."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

APPLICATION = "application_1790000000000_0007"
POD = "ferry-a-b-0a1b-driver"


class Yarn:
    """YARN's REST API: what it answers about its one application, and which were ended."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str] | None] = []
        self.ended: list[str] = []
        yarn = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = yarn.answers.pop(0) if yarn.answers else None
                self.send_response(404 if answer is None else 200)
                self.end_headers()
                if answer is not None:
                    self.wfile.write(json.dumps({"app": {"state": answer[0], "finalStatus": answer[1]}}).encode())

            def do_PUT(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                yarn.ended.append(self.path.split("/")[-2])
                self.send_response(202)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class NoPod(Exception):
    """The error of the client of Kubernetes."""

    status = 404


class Kubernetes:
    """The client of Kubernetes as the Spark provider uses it: the phases of the one pod, and which were deleted.

    Airflow's provider of Kubernetes is not installed here, so this replaces its module, too.
    """

    ApiException = NoPod

    def __init__(self) -> None:
        self.answers: list[str | None] = []
        self.ended: list[str] = []

    def get_kube_client(self) -> Kubernetes:
        return self

    def read_namespaced_pod(self, pod: str, namespace: str) -> SimpleNamespace:
        assert (pod, namespace) == (POD, "ferry")
        answer = self.answers.pop(0) if self.answers else None
        if answer is None:
            raise NoPod
        return SimpleNamespace(status=SimpleNamespace(phase=answer, container_statuses=None))

    def delete_namespaced_pod(self, pod: str, namespace: str, **_: object) -> None:
        assert namespace == "ferry"
        self.ended.append(pod)


@dataclass
class InCluster:
    """A cluster manager with a driver: what it answers and ended, and how a task uses it."""

    manager: Yarn | Kubernetes
    driver: str
    ended: str
    """What it calls the driver that it ended."""
    options: dict[str, Any]
    words: dict[str, Any]
    """Its answers by what they mean."""

    def answers(self, *words: str) -> None:
        self.manager.answers = [self.words[word] for word in words]
