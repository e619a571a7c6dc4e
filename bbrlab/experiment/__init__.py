"""The plan that a guest carries out, and the machine that it runs on."""
