"""Does one trained layer find the optimum that theory writes down, and what does it do when test
prompts have another scale?"""
