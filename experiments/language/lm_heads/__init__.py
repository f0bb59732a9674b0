"""Which heads of a language model do its answers need, and have its tokens a common linear map?"""
