"""How many heads must the first layer have to preprocess d covariates?"""
