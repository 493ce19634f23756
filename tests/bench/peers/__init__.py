"""Nodus beside two durable engines of PyPI: the same work, in one run, on the same machine.

The engines have an environment of their own (`pyproject.toml` and `uv.lock` beside this file), installed when the
part is measured for the first time; `programs/` runs in it and imports nothing of Nodus.
"""
