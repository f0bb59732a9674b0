"""When does descent on preprocessed covariates beat descent, and what do too few heads cost?"""
