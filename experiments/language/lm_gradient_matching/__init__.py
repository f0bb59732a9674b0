"""Do demonstrations that match gradients teach a language model best?"""
