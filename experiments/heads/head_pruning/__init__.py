"""Can all heads but one be removed from every later layer, and what else costs?"""
