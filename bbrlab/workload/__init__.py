"""Short flows: a model of a backbone trace, captures, and the ways to send them."""
