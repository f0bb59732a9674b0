"""Which layers of a language model tolerate clipping? Is more gained than label bias?"""
