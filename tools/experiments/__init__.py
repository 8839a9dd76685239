"""The experiments of the papers, one module each: train what is missing, score it, write the page of results.

They are run from a checkout and not installed.
"""
