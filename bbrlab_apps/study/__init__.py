"""Questions of one's own: studies outside of the checkout, their tables and pictures, two runs beside each other."""
