"""The requirement catalogues as far as tests name them: row ids by section."""
