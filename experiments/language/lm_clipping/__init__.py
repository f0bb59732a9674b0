"""Which layers of a language model tolerate clipping, does A2's search for a rate improve it on new
sentences, and is more gained than a shift of label bias?"""
