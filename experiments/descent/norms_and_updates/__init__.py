"""Does a norm help softmax attention, and does it by smaller updates?"""
