"""Take the documents' pictures of the page: `make pictures`, about half an hour.

It starts local clusters, producers whose rates rise and fall, and an Airflow that runs a flow every minute. A browser
keeps the page open. There are a drill, a gap, and finally a refusal. All of it ends with the pictures.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from PIL import Image
from playwright.sync_api import Frame, Page, ViewportSize, sync_playwright

from ferry.dev import ClusterSpec, RunningCluster, guard, up_all
from ferry.model import Flow
from ferry_airflow import local
from ferry_airflow.demo.data import DemoTopic, TopicWriter
from ferry_airflow.home import USER, LocalHome
from ferry_airflow.naming import dag_id, verify_dag_id
from ferry_airflow.rest import AirflowRest

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
FLOW = Flow(source="primary", target="backup")
OTHER = Flow(source="primary", target="analytics")
"""Runs only when the tool starts it."""
HERE = f"/ferry/flow/{FLOW.source}/{FLOW.target}"
SIZE = ViewportSize(width=1440, height=1150)
PHONE = ViewportSize(width=390, height=844)
NAVIGATION = 300
"""So many pixels at the left of a screen are Airflow's own."""
LEAST_COLOURS = 20
"""A page with words has more: letters have smooth edges."""
COLOURS = 256
"""The colours of a picture's palette: a page has few, and the file is a third as large."""
RUNS = 10
"""So many runs are shown in the charts."""
PATIENCE_S = 1500.0
LOADED_MS = 240_000
"""How long a page may take to load: Airflow's first one takes minutes on a busy machine."""
TIDE_S = 240.0
"""From one peak of the producers to the next, in seconds."""
TOPICS = (
    DemoTopic(name="orders", partitions=6, records=20_000, rate=120, codec="lz4", headers=True),
    DemoTopic(name="payments", partitions=3, records=6_000, rate=60, codec="lz4", headers=True, transactional=True),
    DemoTopic(name="clicks", partitions=6, records=20_000, rate=160, codec="zstd"),
    DemoTopic(name="inventory", partitions=3, records=6_000, rate=40, codec="snappy"),
    DemoTopic(name="customers", partitions=3, records=6_000, rate=20, codec="lz4", tombstones=True),
    DemoTopic(name="audit", partitions=2, records=4_000, rate=10, codec="gzip"),
    DemoTopic(name="telemetry", partitions=4, records=8_000, rate=80, codec="zstd"),
)
LANE = "backfill-january"
PAGES = {
    "topics": f"{HERE}/topics",
    "topic": f"{HERE}/topic/orders",
    "partition": f"{HERE}/partition/orders/1",
    "runs": f"{HERE}/runs",
    "offsets": f"{HERE}/offsets?topic=orders&partition=0&offset=7",
    "groups": f"{HERE}/groups",
    "backfills": f"{HERE}/backfills",
    "lane": f"{HERE}/lane/{LANE}",
    "reports": f"{HERE}/reports",
    "words": "/ferry/words",
}
"""Pages that get one picture each on a screen, in the light theme, and on a phone, in the dark one."""
FORMS = {
    "run": f"{HERE}/",
    "verify": f"{HERE}/",
    "pause": f"{HERE}/",
    "backfill": f"{HERE}/backfills",
    "drill": f"{HERE}/reports",
    "switchover": f"{HERE}/reports",
}
"""Dialogs, by the request that they ask for, and where their buttons are."""
GROUPS = {"billing": "orders", "fraud-check": "payments", "recommendations": "clicks"}
CONFIG = """\
clusters = primary, backup, analytics
primary.bootstrap.servers = {primary}
backup.bootstrap.servers = {backup}
analytics.bootstrap.servers = {analytics}
primary->backup.enabled = true
primary->backup.topics = {topics}
primary->backup.sync.group.offsets.enabled = true
primary->backup.ferry.schedule = * * * * *
primary->analytics.enabled = true
primary->analytics.topics = clicks, orders
primary->analytics.groups = none-.*
primary->analytics.ferry.schedule = none
replication.factor = 1
tasks.max = 2
ferry.rpo.seconds = 300
ferry.guard.retention.passed = fail, skip:telemetry
ferry.report.dir = {folder}/reports
ferry.page.records = true
"""


def main(arguments: Sequence[str]) -> int:
    """Write the pictures; 2 when there is no browser."""
    parser = argparse.ArgumentParser(prog="tools/pictures.py", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="wait at the end, with everything running")
    given = parser.parse_args(arguments)
    program = shutil.which("chromium")
    if program is None:
        sys.stderr.write("chromium is missing: run make prerequisites\n")
        return 2
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ferry-pictures-")))
        with _shown(folder) as scene:
            with sync_playwright() as playwright:
                arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox does not start as root
                browser = playwright.chromium.launch(executable_path=program, args=arguments)
                page = browser.new_context(viewport=SIZE, locale="en-GB", timezone_id="UTC").new_page()
                page.set_default_timeout(LOADED_MS)
                scene.play(page)
                browser.close()
            if given.keep:
                print(
                    f"{scene.home.url}  login {USER}, password {scene.home.password}; interrupt to end it", flush=True
                )
                threading.Event().wait()
    return 0


@contextmanager
def _shown(folder: Path) -> Iterator[Scene]:
    """Start clusters with running producers, and Airflow."""
    homes = folder / "clusters", folder / "airflow"
    with guard(homes[0]), local.guarded(homes[1]):
        names = ("primary", "backup", "analytics")
        clusters = dict(zip(names, up_all([ClusterSpec(name=name) for name in names], home=homes[0]), strict=True))
        source = clusters["primary"].bootstrap
        _created(source)
        config = folder / "ferry.properties"
        servers = {name: cluster.bootstrap for name, cluster in clusters.items()}
        config.write_text(CONFIG.format(topics=", ".join(one.name for one in TOPICS), folder=folder, **servers))
        writers = [TopicWriter(source, topic) for topic in TOPICS]
        for writer in writers:
            writer.write(writer.topic.records)
        ended = threading.Event()
        tide = threading.Thread(target=_tide, args=(writers, source, ended), name="producers", daemon=True)
        tide.start()
        airflow = local.start(homes[1], config=config).home
        try:
            with AirflowRest(airflow) as rest:
                yield Scene(rest=rest, home=airflow, clusters=clusters, config=config, producing=tide.is_alive)
        finally:
            ended.set()
            tide.join()


def _created(bootstrap: str) -> None:
    new = [NewTopic(one.name, num_partitions=one.partitions, replication_factor=1) for one in TOPICS]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics(new).values():
        created.result(60)


def _tide(writers: Sequence[TopicWriter], bootstrap: str, ended: threading.Event) -> None:
    """Produce every topic at a rate that rises and falls around its own, and let groups continue to read."""
    begun = time.monotonic()
    while not ended.is_set():
        now = time.monotonic() - begun
        flood = 0.25 + 1.5 * math.sin(math.pi * now / TIDE_S) ** 2
        for writer in writers:
            writer.write(max(1, round(writer.topic.rate * flood)))
        if int(now) % 10 == 0:
            with suppress(KafkaException):  # a busy broker shows a new topic late: the next time does it
                for group, topic in GROUPS.items():
                    _read_on(bootstrap, group, topic)
        ended.wait(max(0.0, 1.0 - (time.monotonic() - begun - now)))


def _read_on(bootstrap: str, group: str, name: str) -> None:
    """Commit offsets of a group that has read two thirds of its topic."""
    topic = next(one for one in TOPICS if one.name == name)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        places = [TopicPartition(name, number) for number in range(topic.partitions)]
        for place in places:
            place.offset = consumer.get_watermark_offsets(place, timeout=60)[1] * 2 // 3 - 7 * place.partition
        consumer.commit(offsets=places, asynchronous=False)
    finally:
        consumer.close()


class Scene:
    """Everything that is shown."""

    def __init__(
        self,
        *,
        rest: AirflowRest,
        home: LocalHome,
        clusters: dict[str, RunningCluster],
        config: Path,
        producing: Callable[[], bool],
    ) -> None:
        self.rest = rest
        self.home = home
        self.clusters = clusters
        self.config = config
        self.producing = producing
        self.dag = dag_id(FLOW)

    def play(self, page: Page) -> None:
        """Wait for runs while the page is open, and take the pictures."""
        self.rest.wait_dag(self.dag)
        _sign_in(page, self.home)
        self.opened(page, f"{HERE}/")
        for dag in (self.dag, dag_id(OTHER)):
            self.rest.pause(dag, paused=False)
        self.until(page, partial(self.ended, 2), "two runs")
        self.ferry("run", str(OTHER))
        self.ferry(
            "drills", "shadow", str(FLOW), "--topic", "orders", "--topic", "payments", "--from", "earliest", "--clean"
        )
        self.until(page, partial(self.ended, RUNS // 2), "half of the runs")
        self.ferry("run", str(OTHER))
        window = ("--from-offset", "orders:0:0", "--to-offset", "orders:0:5000")
        self.ferry("backfill", str(FLOW), "--lane", LANE, *window)
        self.rest.pause(verify_dag_id(FLOW), paused=False)
        verification = self.rest.trigger(verify_dag_id(FLOW))
        gap = self.with_gap(page)
        self.until(page, partial(self.ended, RUNS), "all runs")
        self.ferry("run", str(OTHER))
        self.taken(page, "flow", f"{HERE}/")
        self.taken(page, "flows", "/ferry/", height=720)
        self.taken(page, "run", f"{HERE}/run/{gap}")
        receipt = self.receipt(page)
        self.taken(page, "receipt", receipt, height=900)
        self.taken(page, "receipt-phone", receipt, ("dark",), **PHONE)
        for name, path in (("flows", "/ferry/"), ("flow", f"{HERE}/"), ("run", f"{HERE}/run/{gap}")):
            self.taken(page, f"{name}-phone", path, **PHONE)
        self.rest.wait_run(verify_dag_id(FLOW), verification, seconds=PATIENCE_S)
        compared = {"verification": f"{HERE}/dag/{verify_dag_id(FLOW)}/run/{quote(verification, safe='')}"}
        self.once(page, PAGES | compared)
        for ask, path in FORMS.items():
            self.form(page, ask, path)
        self.record(page)
        self.report(page)
        self.with_refusal(page)
        self.taken(page, "refused", f"{HERE}/", ("dark",))
        self.once(page, {"refusals": f"{HERE}/refusals"})

    def ferry(self, *arguments: str) -> None:
        """Run the program outside Airflow."""
        command = [str(Path(sys.executable).with_name("ferry")), "--config", str(self.config), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def ended(self, count: int) -> bool:
        """Report whether so many runs have ended; RuntimeError for one that failed."""
        runs = self.rest.runs(self.dag)
        if any(run["state"] == "failed" for run in runs):
            raise RuntimeError(f"a run failed: {[run['dag_run_id'] for run in runs if run['state'] == 'failed']}")
        return [run["state"] for run in runs].count("success") >= count

    def until(self, page: Page, done: Callable[[], bool], what: str) -> None:
        """Keep the page open, which continues to draw, until a condition is met."""
        end = time.monotonic() + PATIENCE_S
        while not done():
            if not self.producing():
                raise RuntimeError("the producers have ended, as is said above: pictures would show a flow at rest")
            if time.monotonic() > end:
                raise TimeoutError(f"there are not {what} after {PATIENCE_S:.0f} s")
            page.wait_for_timeout(1_000)

    def with_gap(self, page: Page) -> str:
        """Delete records at the source before they are copied; return the run that skips them."""
        admin = AdminClient({"bootstrap.servers": self.clusters["primary"].bootstrap})
        before = {run["dag_run_id"] for run in self.rest.runs(self.dag)}
        self.until(page, lambda: self.idle(before), "a moment between two runs")
        for future in admin.delete_records([TopicPartition("telemetry", 2, -1)]).values():
            future.result(60)

        def passed() -> str:
            done = (run for run in self.rest.runs(self.dag) if run["state"] == "success")
            return next((str(run["dag_run_id"]) for run in done if run["dag_run_id"] not in before), "")

        self.until(page, lambda: bool(passed()), "a run after the gap")
        return passed()

    def idle(self, runs: set[str]) -> bool:
        """Report whether no run is active; adds to `runs` all runs that there are then."""
        found = self.rest.runs(self.dag)
        runs.update(str(run["dag_run_id"]) for run in found)
        return not any(run["state"] in ("running", "queued") for run in found)

    def with_refusal(self, page: Page) -> None:
        """Write to a copy as another client, and wait for a run that refuses the partition."""
        producer = Producer({"bootstrap.servers": self.clusters["backup"].bootstrap})
        producer.produce("primary.audit", b"by hand", partition=1)
        producer.flush(60)
        self.until(
            page, lambda: any(run["state"] == "failed" for run in self.rest.runs(self.dag)), "a run that refuses"
        )

    def receipt(self, page: Page) -> str:
        """Return the address of the receipt of a partition of `payments` that has most segments."""
        frame = self.opened(page, f"{HERE}/partition/payments/1")
        frame.locator("tr[id^='receipt:'] details summary").first.wait_for()
        rows = [
            (
                len(row.locator("details > div").all()),
                row.locator("td.mono").first.inner_text(),
                row.locator("td a").first,
            )
            for row in frame.locator("tr[id^='receipt:']").all()
        ]
        _, offsets, run = max(rows, key=lambda row: row[0])
        (start,) = re.findall(r"\[(\d+)", offsets)
        return f"{HERE}/receipt/payments/1/{start}?run={(run.get_attribute('href') or '').rpartition('/')[2]}"

    def opened(self, page: Page, path: str) -> Frame:
        """Open a page of Ferry's in its frame within Airflow, and wait until it is drawn."""
        page.goto(f"{self.home.url}/plugin/ferry")
        found = page.wait_for_selector("iframe")
        frame = found.content_frame() if found else None
        if frame is None:
            raise RuntimeError(f"{path} is in no frame")
        frame.locator("#live").wait_for(state="attached")
        frame.goto(f"{self.home.url}{path}")
        frame.locator("#main").wait_for(state="attached")
        frame.wait_for_function("() => document.querySelector('#main').innerText.trim()")
        frame.wait_for_function("() => !document.querySelector('[data-waiting]')")
        for figure in frame.locator("figure[data-chart]").all():
            figure.locator(".xtick text, .plot .empty").first.wait_for()
        return frame

    def taken(
        self,
        page: Page,
        name: str,
        path: str,
        themes: Sequence[str] = ("light", "dark"),
        width: int = SIZE["width"],
        height: int = SIZE["height"],
    ) -> None:
        """Take the picture in both themes, or in one."""
        page.set_viewport_size({"width": width, "height": height})
        for theme in themes:
            page.evaluate(f"localStorage.setItem('theme', '{theme}')")
            frame = self.opened(page, path)
            frame.locator(f"html[data-theme={theme}]").wait_for(state="attached")
            kept(page, f"{name}-{theme}")

    def once(self, page: Page, paths: Mapping[str, str]) -> None:
        """Take one picture of each page on a screen, and one on a phone."""
        for name, path in paths.items():
            self.taken(page, name, path, ("light",), height=900)
            self.taken(page, f"{name}-phone", path, ("dark",), **PHONE)

    def form(self, page: Page, ask: str, path: str) -> None:
        """Take the pictures of a dialog: on a screen, and on a phone."""
        for frame, name in self.in_sizes(page, path, f"form-{ask}"):
            frame.locator(f"[data-ask={ask}]").first.click()
            frame.locator("#ask[open]").wait_for()
            checks = frame.locator("#ask .checks")
            if checks.count():
                checks.locator("*").first.wait_for()
            kept(page, name)

    def record(self, page: Page) -> None:
        """Take the pictures of a record and its copy."""
        for frame, name in self.in_sizes(page, f"{HERE}/offsets?topic=payments&partition=1&offset=7", "record"):
            frame.locator("[data-ask=record]").last.click()
            frame.locator("#ask-go").click()
            frame.locator("#answer[open]").wait_for()
            kept(page, name)

    def in_sizes(self, page: Page, path: str, name: str) -> Iterator[tuple[Frame, str]]:
        """Open a page on a screen, then on a phone, in the light theme; yield its frame and the name of its picture."""
        for size, ending in ((SIZE | {"height": 900}, "light"), (PHONE, "phone-light")):
            page.set_viewport_size(size)
            page.evaluate("localStorage.setItem('theme', 'light')")
            yield self.opened(page, path), f"{name}-{ending}"

    def report(self, page: Page) -> None:
        """Take the pictures of the drill's report, which is a page of its own."""
        link = self.opened(page, f"{HERE}/reports").locator("a[href*='/report/']").first
        address = f"{self.home.url}{link.get_attribute('href')}"
        for size, name in ((SIZE | {"width": 1100}, "report-light"), (PHONE, "report-phone-light")):
            page.set_viewport_size(size)
            page.goto(address)
            page.locator("h1").wait_for()
            kept(page, name)
        page.goto(f"{self.home.url}/plugin/ferry")  # a report may store nothing, not even a theme


def kept(page: Page, name: str) -> None:
    """Write a screenshot into the folder of pictures."""
    PICTURES.mkdir(exist_ok=True)
    file = PICTURES / f"{name}.png"
    page.screenshot(path=file)
    with Image.open(file) as image:
        whole = image.convert("RGB")
    left = NAVIGATION if whole.width > PHONE["width"] else 0
    if whole.crop((left, 0, *whole.size)).getcolors(LEAST_COLOURS) is not None:
        raise RuntimeError(f"{file.name} is empty: the page was not drawn")
    small = whole.quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(file, optimize=True)
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes", flush=True)


def _sign_in(page: Page, home: LocalHome) -> None:
    page.goto(f"{home.url}/")
    page.locator("input[name=username]").fill(USER)
    page.locator("input[name=password]").fill(home.password)
    page.locator("input[name=password]").press("Enter")
    page.locator("a[href*='plugin/ferry']").first.wait_for()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
