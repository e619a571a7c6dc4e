"""What is asked: scenario files, their schema, their points, what a seed draws."""
