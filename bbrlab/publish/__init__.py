"""Finished results for others: packing, verifying, comparing, archiving and citing them."""
