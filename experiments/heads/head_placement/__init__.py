"""Which layers should a fixed number of heads stand in: is A4's pattern the best of its budget?"""
