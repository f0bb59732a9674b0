"""Do all heads of the first layer matter, and can all but one be removed from every later one?"""
