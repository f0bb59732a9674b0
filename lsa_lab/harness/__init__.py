"""Settings of a process, bounds of configurations, and the look of figures."""
