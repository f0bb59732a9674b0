"""The command line: its words, its commands, and the tasks that are handed to a cluster."""
