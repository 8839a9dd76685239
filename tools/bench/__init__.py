"""Benchmarks: each prints what it measures; none asserts a speed."""
