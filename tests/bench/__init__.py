"""`make bench`: what a step costs, in time, in billed operations and in USD; every figure beside its floor.

A program, not tests: it asserts nothing about speed. docs/benchmarks.md says what each figure means.
"""
