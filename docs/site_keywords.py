"""Show the keywords that a public function takes as `match` does, where its source has ``**keywords: Unpack[…]``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from griffe import (
    Class,
    DocstringParameter,
    DocstringSectionKind,
    Expr,
    Extension,
    Function,
    GriffeLoader,
    Module,
    Parameter,
    ParameterKind,
)

PUBLIC = ("explain", "explain_all", "gpu_match", "gpu_match_all", "gpu_progress", "match_all", "plot", "report")


class MatchKeywords(Extension):
    """Replace ``**keywords`` by the keywords of `match` that its typed dictionary names, in the signature and in the docstring."""

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **_: Any) -> None:
        """Rewrite the functions of a package that has been loaded."""
        for function in functions_of(pkg):
            for parameter in function.parameters:
                if function.name in PUBLIC and parameter.kind is ParameterKind.var_keyword:
                    rewrite(function, parameter, loader)


def functions_of(module: Module) -> Iterator[Function]:
    """Give the functions of a module and of the modules in it."""
    for member in module.members.values():
        if not member.is_alias and member.is_module:
            yield from functions_of(member)
        elif not member.is_alias and member.is_function:
            yield member


def rewrite(function: Function, keywords: Parameter, loader: GriffeLoader) -> None:
    """Put each keyword in the place of `keywords`; what the docstring says of these it says of all that it does not describe."""
    assert isinstance(keywords.annotation, Expr)
    if "gpu_cep" not in loader.modules_collection:
        loader.load("gpu_cep")
    options: Class = loader.modules_collection[keywords.annotation.slice.canonical_path]
    match: Function = loader.modules_collection["gpu_cep.api.match"]
    taken = [each for each in match.parameters if each.name in options.all_members]
    for each in taken:
        function.parameters.add(Parameter(each.name, annotation=each.annotation, kind=each.kind, default=each.default))
    # the docstring is parsed here, and needs both: the keywords, and what stands for them
    rows = next(section for section in function.docstring.parsed if section.kind is DocstringSectionKind.parameters).value
    described = next(row for row in rows if row.name.lstrip("*") == keywords.name)
    rows.remove(described)
    del function.parameters[keywords.name]
    known = {row.name for row in rows}
    rows += [
        DocstringParameter(each.name, description=described.description, annotation=each.annotation, value=str(each.default))
        for each in taken
        if each.name not in known
    ]
