"""How do excess risks grow with non-zeros, covariates and demonstrations?"""
