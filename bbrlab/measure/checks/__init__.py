"""What was asked for against what the guest measured. A run that fails a check is not averaged with others."""
