"""Which layers of a language model tolerate clipping, and is anything gained but label bias?"""
