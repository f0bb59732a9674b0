"""Is the noise of implicit updates Gaussian, and does descent with such noise test alike?"""
