"""The objects that manifest files describe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from nodus._kinds import API_VERSION, KINDS, Kind
from nodus._manifest import MAX_BYTES, Document, parse
from nodus.cli import failures, sources
from nodus.cli.kinds import Target, kind_named, kind_of
from nodus.errors import ManifestError

# Written by the server: `nodus get -o yaml` shows them, so a file made from it may carry them (NOD-484).
_SERVER_FIELDS = frozenset({"generation", "creationTimestamp", "deletionTimestamp", "namespace"})
# By these the server knows which object, and which version of it, the writer has seen: as with kubectl, a replace or
# an apply that carries them is refused when it is another by now. A new object has none.
_SEEN_FIELDS = frozenset({"uid", "resourceVersion"})
_SUFFIXES = {".yaml", ".yml", ".json"}


@dataclass(frozen=True)
class Wanted:
    """One object of a manifest: what to send, and where it was read.

    ``path`` is its place in the document, such as ``items[3]`` of a list.
    """

    target: Target
    project: str | None
    manifest: dict[str, Any]
    document: Document
    path: str = ""


def read(sources: tuple[str, ...], project: str | None, *, new: bool = False) -> list[Wanted]:
    """The objects of files, folders and standard input (``-``), in their order.

    Args:
        sources: names as given to ``-f``.
        project: the project of the option ``--project``, which the manifests must not contradict.
        new: they are to be created: what only an object has that exists is left out, and instead of a name there
            may be the beginning of one (``generateName``), which then is the name of the target.

    Raises:
        ManifestError: a text that is no manifest.
        Failure: a file that cannot be read, or nothing at all.
    """
    documents = [document for source in sources for document in _documents(source)]
    wanted = [one for document in documents for one in _wanted(document, project, new)]
    if not wanted:
        raise failures.usage(f"{', '.join(sources)}: no object in it", "NothingToApply")
    return wanted


def _documents(source: str) -> list[Document]:
    if sources.is_address(source):
        return parse(sources.fetched(source, MAX_BYTES), source)
    path = Path(source)
    if source != "-" and path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
        if not files:
            raise failures.usage(f"no *.yaml, *.yml or *.json in folder {source}", "NothingToApply")
        return [document for file in files for document in _documents(str(file))]
    return parse(sources.content(source, MAX_BYTES + 1), "standard input" if source == "-" else source)


def _wanted(document: Document, project: str | None, new: bool) -> Iterator[Wanted]:
    manifest = _Fields(document, document.value, "")
    kind = manifest.value.get("kind")
    if kind != "List" and not any(kind == f"{known.name}List" for known in KINDS):
        yield _one(manifest, project, new)
        return
    items: Any = manifest.value.get("items") or []
    if not isinstance(items, list):
        manifest.refuse("must be a list of objects", "items")
    for index, item in enumerate(cast("list[Any]", items)):
        yield _one(_Fields(document, item, f"items[{index}]"), project, new)


class _Fields:
    """A mapping in a document, that refuses with its place."""

    def __init__(self, document: Document, value: Any, path: str) -> None:
        self.document = document
        self.path = path
        if not isinstance(value, dict):
            self.value: dict[str, Any] = {}
            self.refuse(
                "must be a mapping of fields" if path else "expected apiVersion, kind, metadata and spec"
            )
        self.value = cast("dict[str, Any]", value)

    def below(self, name: str) -> _Fields:
        """The mapping in a field; an absent one is empty."""
        return _Fields(self.document, self.value.get(name, {}), self._at(name))

    def refuse(self, problem: str, name: str = "") -> NoReturn:
        """Raise for one field, or for the mapping itself."""
        path = self._at(name)
        line = self.document.line_of(path)
        raise ManifestError(problem, source=self.document.source, line=line, field=path)

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}".strip(".")


def _one(fields: _Fields, project: str | None, new: bool) -> Wanted:
    version = fields.value.get("apiVersion")
    if version != API_VERSION:
        fields.refuse(f"must be {API_VERSION}" + (f", not {version!r}" if version else ""), "apiVersion")
    kind = _kind(fields)
    metadata, spec = fields.below("metadata"), fields.below("spec")
    named = _name(metadata, spec.value, new)
    own_project = metadata.value.get("namespace")
    if own_project and project and own_project != project:
        metadata.refuse(f"is {own_project!r}, but --project says {project!r}", "namespace")
    left_out = _SERVER_FIELDS | _SEEN_FIELDS if new else _SERVER_FIELDS
    kept = {key: value for key, value in metadata.value.items() if key not in left_out} | named
    sent = {key: value for key, value in fields.value.items() if key != "status"} | {"metadata": kept}
    return Wanted(Target(kind, next(iter(named.values()))), own_project, sent, fields.document, fields.path)


def _kind(fields: _Fields) -> Kind:
    word = fields.value.get("kind")
    kind = kind_named(word)
    if kind is not None:
        return kind
    try:
        problem = f"write it {kind_of(str(word or '')).name}"
    except failures.Failure as failure:
        problem = failure.message
    return fields.refuse(problem, "kind")


def _name(metadata: _Fields, spec: dict[str, Any], new: bool) -> dict[str, str]:
    """The name, or for a new object the beginning of one, as it is sent.

    A member of a group that has none is called GROUP-TASKKEY (NODQ-93).
    """
    given = metadata.value
    if given.get("name") is None and spec.get("group") and spec.get("taskKey"):
        return {"name": f"{spec['group']}-{spec['taskKey']}"}
    prefix = given.get("name") is None and given.get("generateName") is not None
    if prefix and not new:
        metadata.refuse("is required: generateName is for `nodus create -f` only", "name")
    field = "generateName" if prefix else "name"
    value = given.get(field)
    if not isinstance(value, str):
        metadata.refuse("is required" if value is None else f"must be a text: write {str(value)!r}", field)
    return {field: value}
