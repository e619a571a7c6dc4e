"""What a guest's samples say: decoded, measured, checked."""
