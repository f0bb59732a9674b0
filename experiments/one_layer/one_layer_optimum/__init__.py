"""Does one trained layer find the optimum that theory writes down?"""
