"""Settings of a process that computes, and checks of configurations."""
