"""The site: one's results, the papers' statements and the documentation as static pages that need no network."""
