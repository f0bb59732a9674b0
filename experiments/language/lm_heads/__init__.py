"""Which heads does a language model need, and have its tokens one linear map?"""
