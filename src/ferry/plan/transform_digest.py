"""A transform's digest: what it is in the file, what its function's modules say, and which Spark carries it out.

Whoever plans puts it into the plan, without Spark; the job that carries the transform out holds its own against it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ferry.config.flow.transforms import TransformSpec
from ferry.errors import BadInput, Refused
from ferry.plan.function_text import text_digest


def transform_digest(spec: TransformSpec) -> str:
    """SHA-256 (hexadecimal) of the transform with the PySpark of this machine, and with the text of its function.

    Raises BadInput by the transform's key for a function that cannot be imported or read and a salt that cannot be had,
    Refused where no PySpark is installed.
    """
    spark = pyspark_version()
    if not spark:
        raise Refused(
            f"ferry.transform.{spec.name}: no PySpark is installed here, whose version is part of the transform: "
            "install Ferry with its extra spark where runs are planned"
        )
    code = ""
    if spec.function is not None:
        try:
            code = text_digest(spec.function, imported(spec.function))
        except BadInput as error:
            raise BadInput(f"ferry.transform.{spec.name}.function: {error}") from None
    return spec.digest(spark_version=spark, code=code)


def pyspark_version() -> str:
    """Of the PySpark of this machine; empty where there is none."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return ""


def imported(path: str) -> Callable[..., Any]:
    """What `package.module:function` names. Raises BadInput when it cannot be imported, or is no function."""
    name, _, attribute = path.partition(":")
    try:
        found: Any = importlib.import_module(name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise BadInput(
            f"{path} cannot be imported: there is no module {error.name}; install it, or put its folder on PYTHONPATH,"
            " where runs are planned and where Spark's driver is"
        ) from None
    except AttributeError:
        raise BadInput(f"{path} cannot be imported: module {name} has no {attribute}; correct the name") from None
    except Exception as error:
        raise BadInput(f"{path} cannot be imported: {type(error).__name__}: {error}; correct the module") from error
    if not callable(found):
        raise BadInput(f"{path} is {type(found).__name__}, and cannot be called: name a function of a DataFrame")
    return found  # type: ignore[no-any-return]
