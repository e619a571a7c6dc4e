"""What is done with finished runs: packing them to ship, verifying, comparing and judging them anew."""
