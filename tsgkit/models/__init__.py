"""What a model is: its state, its prior, and its export to a weighted grammar."""
