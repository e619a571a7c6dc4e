"""The plots. Each function draws one figure and returns it."""
