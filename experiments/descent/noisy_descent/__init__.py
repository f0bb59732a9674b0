"""Is the noise of implicit updates Gaussian, and does descent with it test alike?"""
