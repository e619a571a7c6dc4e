"""Self-checks: the scenario against what the guest measured. A run that fails one is not averaged with others."""
