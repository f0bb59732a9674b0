"""When does the order of the demonstrations matter, where does the relevant one count most, and
which order helps?"""
