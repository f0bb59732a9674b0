"""Do demonstrations that match the gradients of a learnt prefix teach a language model best?"""
