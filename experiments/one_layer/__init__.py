"""One trained layer, and the optimum that theory writes down."""
