"""Do heads help until there are as many as covariates, and which rules are beaten?"""
