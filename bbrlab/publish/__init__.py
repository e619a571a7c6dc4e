"""Works on finished runs: packs them to ship, verifies, compares and judges them anew."""
