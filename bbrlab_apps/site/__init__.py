"""The site: results, statements and documentation as static pages, and a single run as one."""
