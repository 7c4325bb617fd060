"""The digest of a transform: its text in the file, the text of its function's modules, and the version of Spark.

The planning process puts it into the plan, without starting Spark. The job that carries out the transform compares its
own digest with it.
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
    """Return the SHA-256 (hexadecimal) of the transform with this machine's PySpark version and its function's text.

    Raises BadInput with the transform's key if its function cannot be imported or read, or if its salt cannot be read.
    Raises Refused if PySpark is not installed.
    """
    spark = pyspark_version()
    if not spark:
        raise Refused(
            f"ferry.transform.{spec.name}: no PySpark is installed here, whose version is part of the transform: "
            "install ferry-replicator[spark] where runs are planned"
        )
    code = ""
    if spec.function is not None:
        try:
            code = text_digest(spec.function, imported(spec.function))
        except BadInput as error:
            raise BadInput(f"ferry.transform.{spec.name}.function: {error}") from None
    return spec.digest(spark_version=spark, code=code)


def pyspark_version() -> str:
    """Return the version of PySpark on this machine; empty if it is not installed."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return ""


def imported(path: str) -> Callable[..., Any]:
    """Return the function that `package.module:function` names.

    Raises BadInput if it cannot be imported, or is not callable.
    """
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
