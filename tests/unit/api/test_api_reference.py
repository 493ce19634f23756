"""The committed documents are those that the models make."""

from pathlib import Path

import pytest
from nodus_core.documents import reference

DOCS = Path(__file__).resolve().parents[3] / "docs"
HOW = "run: PYTHONPATH=layers/core/python python -m nodus_core.documents.reference docs"


@pytest.mark.parametrize(("file", "made"), [("openapi.json", reference.openapi), ("api.md", reference.page)])
def test_the_committed_document_is_the_one_that_the_models_make(file: str, made: object) -> None:
    assert callable(made)
    assert (DOCS / file).read_text() == made(), HOW
