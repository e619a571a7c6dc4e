"""What everything stands on: errors, files, paths, YAML."""
