"""What the page has from the interface of the installed Airflow: its colours, and where it keeps the chosen zone."""

from __future__ import annotations

import re
from functools import cache
from math import cos, radians, sin
from pathlib import Path

import airflow
import pytest

from ferry_airflow.page.rendering import FOLDER

ASSETS = Path(airflow.__file__).parent / "ui" / "dist" / "assets"
STYLE = (FOLDER / "static" / "ferry.css").read_text()
SHADES = {
    ":root": {"accent": "brand.600", "accent-soft": "brand.100", "button": "brand.600", "link": "blue.600"},
    '[data-theme="dark"]': {
        "accent": "brand.400",
        "accent-soft": "brand.800",
        "button": "brand.600",
        "link": "blue.300",
    },
}
"""By theme: what a colour of the page is in Airflow, whose buttons are `brand.600`, and whose links are `fg.info`."""


@cache
def interface() -> str:
    """The script of Airflow's interface with its tokens."""
    return next(text for path in ASSETS.glob("index-*.js") if "brand:{50" in (text := path.read_text()))


def shade(name: str) -> tuple[float, float, float]:
    """A token's OKLCH value: lightness, chroma, hue."""
    palette, number = name.split(".")
    shades = re.search(rf"[{{,]{palette}:\{{((?:\d+:\{{value:`oklch\([^`]*\)`\}},?)+)\}}", interface())
    assert shades, f"Airflow has no palette {palette}"
    value = re.search(rf"(?:^|,){number}:\{{value:`oklch\(([^`]*)\)`\}}", shades[1])
    assert value, name
    lightness, chroma, hue = map(float, value[1].split())
    return lightness, chroma, hue


def as_hex(lightness: float, chroma: float, hue: float) -> str:
    """OKLCH as sRGB: https://bottosson.github.io/posts/oklab/."""
    a, b = chroma * cos(radians(hue)), chroma * sin(radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    curved = (12.92 * one if one <= 0.0031308 else 1.055 * one ** (1 / 2.4) - 0.055 for one in linear)
    return "#" + "".join(f"{round(255 * min(1.0, max(0.0, one))):02x}" for one in curved)


@pytest.mark.parametrize("theme", SHADES)
def test_accent_and_links_are_airflows(theme: str) -> None:
    rules = STYLE.partition(f"{theme} {{")[2].partition("}")[0]
    ours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", rules))
    wanted = SHADES[theme]
    assert {name: ours[name] for name in wanted} == {name: as_hex(*shade(token)) for name, token in wanted.items()}


def test_airflow_keeps_the_chosen_zone_where_the_page_reads_it() -> None:
    key = re.search(r'const ZONE = "(\w+)"', (FOLDER / "static" / "ferry.js").read_text())
    assert key
    assert f"=`{key[1]}`," in interface()
