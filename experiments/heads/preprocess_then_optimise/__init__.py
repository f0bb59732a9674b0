"""When does descent on preprocessed covariates beat descent?"""
