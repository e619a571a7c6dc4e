"""The image with all of bbrlab in it (Dockerfile): what it stands on, who builds it, and how it is handed on."""
