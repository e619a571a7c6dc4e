"""What is shown of results: the terminal, notebooks and the site."""
