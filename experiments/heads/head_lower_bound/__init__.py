"""What does it cost to preprocess with fewer heads than there are covariates?"""
