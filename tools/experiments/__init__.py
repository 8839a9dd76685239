"""The experiments of the papers, one module each: train what is missing, score it, write the page of results."""
