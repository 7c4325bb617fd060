"""A report as one page of HTML: without requests and scripts; it prints on A4."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ferry.config.flow.report import PDF
from ferry.errors import BadInput
from ferry.features.evidence.rules.codec import SealedReport
from ferry.features.evidence.rules.document import Chart, Sentences, Table, document_of

if TYPE_CHECKING:  # the command line starts fast
    from jinja2 import Environment

_NEEDED = ("jinja2", "matplotlib")
NEEDED_FOR_PDF = ("matplotlib", "fpdf", "uharfbuzz")


def check_renderer() -> None:
    """Raise BadInput, with the remedy, if the libraries that make pages are not installed."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise BadInput(f"reports need {' and '.join(missing)}: install ferry-replicator[reports]")


def lacks_for_pdf() -> list[str]:
    """Return the libraries that make PDFs and are not installed."""
    return [name for name in NEEDED_FOR_PDF if find_spec(name) is None]


def check_pdf_renderer() -> None:
    """Raise BadInput, with the remedy, if the libraries that make PDFs are not installed."""
    missing = lacks_for_pdf()
    if missing:
        raise BadInput(
            f"{PDF} = true needs {' and '.join(missing)}: install ferry-replicator[pdf], or set {PDF} = false"
        )


def rendered(report: SealedReport, sha256: str) -> str:
    """Return the page of a report; `sha256` is the digest of its JSON."""
    # Matplotlib takes half a second to import, and `ferry --help` does not draw.
    from ferry.features.evidence.acts.charts import as_svg, drawn  # noqa: PLC0415 - as said

    template = _environment().get_template("report.html.jinja")
    return template.render(it=document_of(report, sha256), drawn=lambda chart: drawn(chart, as_svg))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - only where a page is made

    environment = Environment(
        loader=PackageLoader("ferry.features.evidence.acts", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name, kind in (("sentences", Sentences), ("table", Table), ("chart", Chart)):
        environment.tests[name] = lambda block, kind=kind: isinstance(block, kind)
    return environment
