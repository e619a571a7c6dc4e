"""What a guest does: the plan that it carries out, and the machine that it runs on."""
