"""What people look at: pages, plots, the scorecard."""
