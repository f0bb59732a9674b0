"""What experiments are made of: stacks they train, cases they draw, rules they compare."""
