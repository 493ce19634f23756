"""The scripted model server: speaks both model wire formats over real HTTP and plays YAML scripts.

It needs no key and no network, and never pretends to be a real model: see `README.md` in this folder.
"""
