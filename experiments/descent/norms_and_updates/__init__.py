"""Does a norm help softmax attention, and by smaller updates; and how do the sizes of updates
depend on the number of demonstrations?"""
