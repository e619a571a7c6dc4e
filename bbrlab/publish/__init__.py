"""What is handed to others: how bbrlab is cited, a campaign as one archive with its provenance, the table of an artifact's statements."""
