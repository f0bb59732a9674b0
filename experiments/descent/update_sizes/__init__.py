"""How do the sizes of implicit updates depend on the number of demonstrations?"""
