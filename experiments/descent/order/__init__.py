"""For which models does the order of the demonstrations matter, and how much?"""
