"""Recognise a DataFrame that is nothing but a scan of Parquet files, by the plan that Spark's optimiser makes of it.

Whatever is not certain is no such scan: then a sentence says why, and Spark reads the rows itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, DateType, IntegerType, LongType, StringType, StructField, StructType

from gpu_cep.engine.input.file_systems import is_uri
from gpu_cep_spark.files.places import NoScanError, places_of
from gpu_cep_spark.files.scan_filters import arrow_filter
from gpu_cep_spark.jvm import items
from gpu_cep_spark.narrowing.pushdown import read_columns
from gpu_cep_spark.schemas import arrow_schema

if TYPE_CHECKING:
    from pyarrow.dataset import Expression

# The classes of Spark whose files Arrow reads as they do; those of table formats have other names.
_PACKAGE = "org.apache.spark.sql.execution.datasources"
_FORMAT = f"{_PACKAGE}.parquet.ParquetFileFormat"
_INDEXES = (f"{_PACKAGE}.InMemoryFileIndex", f"{_PACKAGE}.CatalogFileIndex")
# Settings of the session, or options of the reader, with the values under which Spark reads as Arrow does.
_REQUIRED = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
}
_OPTIONS = {"ignorecorruptfiles": "false", "ignoremissingfiles": "false", "datetimerebasemode": "CORRECTED"}
_ENCRYPTION = "parquet.crypto.factory.class"
# The nodes of an analysed plan that choose and name columns.
_CHOOSING = ("Project", "SubqueryAlias", "View")
# What stands between the names of columns, and in none.
_BETWEEN = "\0"
# Columns of which the JVM is asked at a time: an answer of more than 8 KiB waits for TCP's acknowledgement, 40 ms.
_TOGETHER = 100
# Spark keeps the types CHAR and VARCHAR in the metadata of a column.
_BOUNDED = "__CHAR_VARCHAR_TYPE_STRING"
# Files hold instants in UTC, so that none is converted before filters see it.
_ZONE = "UTC"
# How Spark writes NULL into the name of a folder.
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
# Types of folders' names that read as what Spark reads; others depend on zones and rounding.
_OF_FOLDERS = (StringType, IntegerType, LongType, DateType)


@dataclass(frozen=True, slots=True)
class FileScan:
    """Parquet files, and what a DataFrame makes of them.

    Parameters
    ----------
    paths
        The files in Spark's order: paths on this machine, or URIs of files elsewhere.
    columns
        The name in the files of each column of the DataFrame.
    schema
        The columns that are read, as they are called in the files, in the types of the DataFrame; instants are in UTC.
    types
        The same columns with Spark's types.
    folders
        For each column that the names of folders hold, its value in each file.
    condition
        Which rows the DataFrame keeps; None for all.
    filtered
        The columns that `condition` reads.
    size
        The bytes of all files together, as Spark has listed them; None if nobody needs them, since all are on this machine.
    """

    paths: tuple[str, ...]
    columns: tuple[str, ...]
    schema: pa.Schema
    types: StructType
    folders: Mapping[str, pa.Array]
    condition: Expression | None
    filtered: tuple[str, ...] = ()
    size: int | None = None


def find_scan(df: DataFrame, names: Sequence[str], *, remote: bool = False) -> FileScan:
    """Return the scan that the columns `names` of a DataFrame are; of files that are not on this machine only if `remote`.

    The plan that Spark keeps of the DataFrame tells it, where that is certain. A plan of these columns alone takes Spark as long as
    all else that the driver does.

    Raises
    ------
    NoScanError
        They are none, or not certain to be one.
    """
    session: Any = df.sparkSession
    if not isinstance(session, SparkSession):
        raise NoScanError("a client of Spark Connect does not see the plan of a DataFrame")
    kept = _kept_scan(session, df, names, remote=remote)
    return _scan_of(session, read_columns(df, names), range(len(names)), remote=remote) if kept is None else kept


def _kept_scan(session: SparkSession, df: DataFrame, names: Sequence[str], *, remote: bool) -> FileScan | None:
    """Return the scan by the plan that Spark keeps of a DataFrame; None if these columns must be planned alone.

    The plan kept may be no certain scan, text may have to be cast, names may differ in case alone, or a column that is not read may
    be an error to plan. Or the plan might be another today: a filter may compare with the time of the plan, and events may have come
    into Spark's cache since.
    """
    if not session._jsparkSession.sharedState().cacheManager().isEmpty() or len({name.lower() for name in df.columns}) < len(df.columns):
        return None
    try:
        if not _is_as_asked(df):
            return None
        found = _scan_of(session, df, [df.columns.index(name) for name in names], remote=remote)
    except (NoScanError, PySparkException):
        return None
    return found if all(map(_is_plain, found.types.fields)) else None


def _is_as_asked(df: DataFrame) -> bool:
    """Return whether a DataFrame chooses columns of a relation and nothing else; filters that are always true are gone once planned."""
    plan = df._jdf.queryExecution().analyzed()
    while (kind := plan.getClass().getSimpleName()) in _CHOOSING:
        plan = plan.child()
    return bool(kind == "LogicalRelation")


def _is_plain(field: StructField) -> bool:
    """Return whether a column is no text, or text without a collation and of any length."""
    return not isinstance(field.dataType, StringType) or (field.dataType == StringType() and _BOUNDED not in field.metadata)


class _Parts(NamedTuple):
    """The filters of an optimised plan, its columns (None: all of the relation), and the relation."""

    filters: list[Any]
    projected: list[Any] | None
    below: Any


def _parts_of(df: DataFrame) -> _Parts:
    """Return the parts of the optimised plan of a DataFrame; NoScanError if it has others."""
    plan = df._jdf.queryExecution().optimizedPlan()
    projected: list[Any] | None = None
    filters: list[Any] = []
    while (kind := plan.getClass().getSimpleName()) in ("Project", "Filter"):
        if kind == "Filter":
            filters.append(plan.condition())
        elif filters or projected is not None:
            raise NoScanError("the DataFrame filters or projects in several steps")
        else:
            projected = list(items(plan.projectList()))
        plan = plan.child()
    if kind != "LogicalRelation":
        raise NoScanError(f"its plan has a node {plan.nodeName()}, and a scan has only filters and chosen columns")
    return _Parts(filters, projected, plan)


def _scan_of(session: SparkSession, df: DataFrame, places: Sequence[int], *, remote: bool) -> FileScan:
    """Return the scan that the columns at some places of a DataFrame are, by its optimised plan."""
    read = _parts_of(df)
    relation = read.below.relation()
    _check_relation(relation)
    of_folders = _fields(relation.partitionSchema())
    if relation.location().getClass().getName() == _INDEXES[1] and of_folders:
        raise NoScanError("the catalog says which partitions its files belong to")
    attributes = _attributes(read.below)
    # behind those of files and folders are the columns that Spark computes of each file
    known = dict(attributes[: relation.schema().size()])
    of_files = [name for name in known.values() if name not in of_folders]
    if len({name.lower() for name in of_files}) < len(of_files):
        raise NoScanError("the names of some columns differ in case alone")
    if read.projected is None:
        columns = tuple(_known(attributes[place], known) for place in places)
    else:
        columns = tuple(_source(read.projected[place], known) for place in places)
    _check_settings(session, dict(_lower_options(relation)))
    condition, filtered = arrow_filter(read.filters, known) if read.filters else (None, ())
    wanted = tuple(dict.fromkeys((*columns, *filtered)))
    types = _fields(_chosen(session, relation.dataSchema(), [name for name in wanted if name not in of_folders])) | of_folders
    kinds = StructType([types[name] for name in wanted])
    paths = places_of(list(relation.location().inputFiles()), remote=remote)
    folders = {field.name: _of_folders(field.name, field.dataType, paths) for field in kinds.fields if field.name in of_folders}
    return FileScan(paths, columns, arrow_schema(kinds, _ZONE), kinds, folders, condition, filtered, _listed_size(relation, paths))


def scan_of_paths(df: DataFrame, columns: Sequence[str]) -> FileScan:
    """Return the scan of a DataFrame that is known to read Parquet files as they are, also on Spark Connect.

    Raises
    ------
    NoScanError
        Spark does not read them as Arrow does, or folders' names hold columns.
    """
    _check_settings(df.sparkSession, {})
    read = StructType([df.schema[name] for name in columns])
    uris = df.inputFiles()
    if any(urlsplit(uri).scheme != "file" for uri in uris):
        raise NoScanError("its files are not on this machine, and of a client of Spark Connect tasks read only those that are")
    paths = places_of(uris, remote=False)
    if any("=" in part for path in paths for part in path.split("/")):
        raise NoScanError("a client of Spark Connect does not see which columns the names of folders hold")
    return FileScan(paths, tuple(columns), arrow_schema(read, _ZONE), read, {}, None)


def _check_relation(relation: Any) -> None:
    """Raise NoScanError unless a relation of Spark's is of Parquet files that it lists by itself."""
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        raise NoScanError("it reads no files")
    kinds = relation.fileFormat().getClass().getName(), relation.location().getClass().getName()
    if kinds[0] != _FORMAT or kinds[1] not in _INDEXES:
        raise NoScanError(f"its files are read as {_short(kinds[0])} listed by {_short(kinds[1])}, and not as plain Parquet")


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _attributes(below: Any) -> list[tuple[int, str]]:
    """Return the numbers and names of a relation's columns; the JVM is asked for :data:`_TOGETHER` at a time."""
    columns = below.output()
    texts = [columns.slice(low, low + _TOGETHER).mkString(_BETWEEN) for low in range(0, columns.size(), _TOGETHER)]
    # name#number and a letter for a type
    written = [text.rpartition("#") for text in _BETWEEN.join(texts).split(_BETWEEN)]
    return [(int(number.rstrip("L")), name) for name, _, number in written]


def _known(attribute: tuple[int, str], known: Mapping[int, str]) -> str:
    """Return the name of a relation's column; NoScanError if neither files nor folders have it."""
    number, name = attribute
    if number not in known:
        raise NoScanError(f"column {name!r} is computed")
    return name


def _source(expression: Any, known: Mapping[int, str]) -> str:
    """Return the file's column that an expression of a projection is, under whatever name."""
    kind = expression.getClass().getSimpleName()
    inner = expression.child() if kind == "Alias" else expression
    name = known.get(inner.exprId().id()) if inner.getClass().getSimpleName() == "AttributeReference" else None
    if name is None:
        raise NoScanError(f"column {expression.name()!r} is computed")
    return name


def _lower_options(relation: Any) -> Iterator[tuple[str, str]]:
    """Yield the options of the reader, their names in small letters, as Spark takes them."""
    options = relation.options().iterator()
    while options.hasNext():
        pair = options.next()
        yield str(pair._1()).lower(), str(pair._2())


def _check_settings(session: Any, options: Mapping[str, str]) -> None:
    """Raise NoScanError if a setting of the session, or an option of the reader, has Spark read otherwise."""
    given = _given_settings(session)
    wrong = [f"{name}={value}" for name, value in given.items() if value.upper() != _REQUIRED[name].upper()]
    wrong += [f"{name}={options[name]}" for name, value in _OPTIONS.items() if options.get(name, value).upper() != value.upper()]
    wrong += [name for name in options if name.startswith("parquet.crypto") or "encryption" in name]
    if wrong:
        raise NoScanError(f"Spark reads these files by {', '.join(wrong)}")
    if isinstance(session, SparkSession):
        encryption = session._jsc.hadoopConfiguration().get(_ENCRYPTION)
    else:
        encryption = session.conf.get(f"spark.hadoop.{_ENCRYPTION}", None)
    if encryption:
        raise NoScanError(f"Spark decrypts files ({_ENCRYPTION})")


def _given_settings(session: Any) -> dict[str, str]:
    """Return the settings that :data:`_REQUIRED` names; a client of Spark Connect asks its server once for all."""
    if isinstance(session, SparkSession):
        return {name: str(session.conf.get(name)) for name in _REQUIRED}
    return dict(zip(_REQUIRED, map(str, session.client.get_configs(*_REQUIRED)), strict=True))


def _chosen(session: SparkSession, schema: Any, names: Sequence[str]) -> Any:
    """Return the fields of a schema of Spark's that have some names, as a schema: an answer above 8 KB comes 40 ms late."""
    jvm: Any = session._jvm
    return schema.apply(jvm.PythonUtils.toSeq(list(names)).toSet())


def _fields(schema: Any) -> dict[str, StructField]:
    """Return the fields of a schema of Spark's by their names."""
    return {field.name: field for field in StructType.fromJson(json.loads(schema.json())).fields}


def _listed_size(relation: Any, paths: Sequence[str]) -> int | None:
    """Return the bytes of all files as Spark has listed them; None if all are on this machine."""
    if not any(map(is_uri, paths)):
        return None
    if relation.location().getClass().getName() != _INDEXES[0]:
        raise NoScanError("it is a table of the catalog, whose files are not on this machine: tasks cannot compare them with Spark's list")
    return int(relation.location().sizeInBytes())


def _of_folders(name: str, kind: DataType, paths: Sequence[str]) -> pa.Array:
    """Return the values that folders called ``name=value`` give to files, in the type that Spark has found for them."""
    if not isinstance(kind, _OF_FOLDERS):
        raise NoScanError(f"column {name!r}, from the names of folders, is {kind.simpleString()}, which only Spark reads as Spark does")
    texts = [_folder_text(name, path) for path in paths]
    whole = arrow_schema(StructType().add("value", kind), _ZONE).field(0).type
    try:
        return pa.array(texts, pa.string()).cast(whole)
    except pa.ArrowInvalid as fault:
        raise NoScanError(f"column {name!r}, from the names of folders, is not surely {kind.simpleString()}") from fault


def _folder_text(name: str, path: str) -> str | None:
    """Return what the name of a file's folder says of a column; None for NULL."""
    found = [part.partition("=")[2] for part in map(_unescape, path.split("/")[:-1]) if part.partition("=")[0] == name]
    if len(found) != 1:
        raise NoScanError(f"the folders of {path!r} do not say once what {name!r} is")
    return None if found[0] == _NULL_FOLDER else found[0]


def _unescape(name: str) -> str:
    """Return the name of a folder as Spark reads it: two hexadecimal digits behind a % are one character, whatever UTF-8 says."""
    return re.sub("%([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), name)
