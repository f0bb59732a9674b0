"""In which layer is the answer readable, and what does the first layer write?"""
